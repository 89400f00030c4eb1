// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/summaries/update_summary.h"

#include <cmath>
#include <cstring>

#include "session/hook_context.h"
#include "session/run_names.h"
#include "session/summaries/chosen_names.h"
#include "session/summaries/histogram_data.h"

namespace lockstep {

namespace {

constexpr ParamSpec kTable[] = {
    {"variables", ParamType::strings, "null", "or null",
     "Patterns of the variables, among those that are trained. null: all.", Change::free},
    {"every_steps", ParamType::integer, "100", "[1, 1e12]", "At multiples of so many steps.", Change::free},
    {"histograms", ParamType::boolean, "true", "", "Write updates/VARIABLE.", Change::free},
    {"ratios", ParamType::boolean, "true", "",
     "Write update_ratio/VARIABLE, also to metrics.jsonl: the norm of the update divided by that of the "
     "variable.",
     Change::free},
};

/// Of the device's memory, by all threads on the CPU.
void copy(const ExecutorContext& context, void* to, const void* from, std::size_t bytes) {
  if (!context.device.is_host()) return context.device.copy(context.stream(), to, from, bytes);
  const ThreadPool& pool = context.pool;
  context.pool.run([&](int t) {
    const Range part = part_of(static_cast<std::int64_t>(bytes), t, pool.size(), 4096);
    if (part.size() > 0)
      std::memcpy(static_cast<char*>(to) + part.first, static_cast<const char*>(from) + part.first,
                  static_cast<std::size_t>(part.size()));
  });
}

}  // namespace

std::span<const ParamSpec> UpdateSummary::table() { return kTable; }

UpdateSummary::UpdateSummary(const Params& options)
    : Hook("summary.updates"),
      options_(options),
      timer_(options.integer("every_steps"), {}),
      histograms_(options.boolean("histograms")),
      ratios_(options.boolean("ratios")) {
  if (!histograms_ && !ratios_)
    throw options.error("ratios", "neither histograms nor ratios are wanted", "Set summary.updates: false.");
}

void UpdateSummary::check(const RunNames& names) const {
  chosen_names(options_, "variables", names.trained_variables);
}

void UpdateSummary::begin(HookContext& context) {
  const VariableStore& store = context.variables();
  variables_ = chosen_variables(options_, store, true);
  before_ = Buffer(context.trainer().device(),
                   static_cast<std::size_t>(store.trainable_elements()) * sizeof(float));
  std::vector<std::int64_t> counts;
  for (const VariableId id : variables_) {
    ratio_tags_.push_back("update_ratio/" + store[id].name);
    const float* const values = store.value(id);
    const std::int64_t count = store[id].shape.num_elements();
    arrays_.push_back(
        {.values = values, .minus = before_.as<float>().data() + store[id].offset, .count = count});
    counts.push_back(count);
    if (!ratios_) continue;
    arrays_.push_back({.values = values, .count = count});
    counts.push_back(count);
  }
  meter_ = std::make_unique<DistributionMeter>(context.trainer().context(), context.control(), counts);
}

void UpdateSummary::before_run(HookContext& context) {
  if (timer_.due_by_step(context.global_step() + 1))
    copy(context.trainer().context(), before_.data(), context.variables().trainable_address(),
         before_.size_bytes());
}

void UpdateSummary::after_run(HookContext& context, const StepResult& result) {
  if (!timer_.due_by_step(result.step)) return;
  meter_->measure(arrays_);
  if (!context.is_chief()) return;
  std::vector<SummaryValue> histograms;
  std::vector<RunReports::Value> ratios;
  const std::size_t stride = ratios_ ? 2 : 1;
  for (std::size_t i = 0; i < variables_.size(); ++i) {
    const DistributionTotal update = meter_->total(i * stride);
    if (histograms_)
      append_histogram(histograms, "updates/" + context.variables()[variables_[i]].name, update);
    if (!ratios_) continue;
    const DistributionTotal values = meter_->total(i * stride + 1);
    const double squares =
        update.not_finite + values.not_finite > 0 ? std::nan("") : update.moments.sum_squares;
    // A variable that is all zero has no ratio.
    if (values.moments.sum_squares != 0)
      ratios.push_back({ratio_tags_[i], std::sqrt(squares / values.moments.sum_squares)});
  }
  if (!histograms.empty())
    context.reports().summary(RunReports::Split::train, result.step, std::move(histograms));
  if (!ratios.empty())
    context.reports().record(RunReports::Split::train, result.step, result.epoch + 1, ratios);
}

}  // namespace lockstep
