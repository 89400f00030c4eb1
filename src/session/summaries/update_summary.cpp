// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/summaries/update_summary.h"

#include <cmath>
#include <cstring>

#include "config/option.h"
#include "core/range.h"
#include "core/thread_pool.h"
#include "session/hook_context.h"
#include "session/summaries/summary_part.h"
#include "train/trainer.h"

namespace lockstep {

namespace {

using Options = UpdateSummary::Options;
using Common = UpdateSummary::Common;
constexpr ParamSpec kTable[] = {
    option<&Options::common, &Common::variables>(
        "variables", "null", or_null(), "Patterns of the variables, among those that are trained. null: all.",
        Change::free),
    option<&Options::common, &Common::every_steps>("every_steps", "100", between(1, 1e12),
                                                   "After the first step, and at multiples of so many.",
                                                   Change::free),
    option<&Options::common, &Common::histograms>("histograms", "true", {}, "Write updates/VARIABLE.",
                                                  Change::free),
    option<&Options::ratios>(
        "ratios", "true", {},
        "Write update_ratio/VARIABLE, also to metrics.jsonl: the norm of the update divided by that of the "
        "variable.",
        Change::free),
};

/// Variables begin at multiples of this number of elements (variable_store.h), in the copy too.
constexpr std::int64_t kMultiple = 16;

std::int64_t padded(std::int64_t count) { return (count + kMultiple - 1) / kMultiple * kMultiple; }

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

UpdateSummary::UpdateSummary(const Options& options, const Params& params)
    : VariableSummary("summary.updates", options.common, Of::trained_variables), ratios_(options.ratios) {
  if (!options.common.histograms && !ratios_)
    throw params.error(option_name<&Options::ratios>(params), "neither histograms nor ratios are wanted",
                       "Set summary.updates: false.");
}

RecordedText UpdateSummary::recorded(const Run& run) const {
  RecordedText text = text_of(run.names);
  if (ratios_) text.numbers = "update ratios";
  text.kept = "a copy of these variables";
  for (const std::string& name : chosen(run.names)) {
    const VariableStore& store = *run.model.variables;
    text.kept_bytes += sizeof(float) * static_cast<std::size_t>(store[store.find(name)].shape.num_elements());
  }
  return text;
}

void UpdateSummary::declare(HookContext& context) {
  const VariableStore& store = context.variables();
  std::int64_t size = 0;
  for (const VariableId id : variables()) {
    const float* const from = store.value(id);
    const std::int64_t count = padded(store[id].shape.num_elements());
    if (!parts_.empty() && parts_.back().from + parts_.back().count == from)
      parts_.back().count += count;
    else
      parts_.push_back({from, size, count});
    size += count;
  }
  before_ = Buffer(context.trainer().device(), static_cast<std::size_t>(size) * sizeof(float));
  const float* before = before_.as<float>().data();
  for (const VariableId id : variables()) {
    ratio_tags_.push_back("update_ratio/" + store[id].name);
    const std::int64_t count = store[id].shape.num_elements();
    arrays().push_back({.values = store.value(id), .minus = before, .count = count});
    if (ratios_) arrays().push_back({.values = store.value(id), .count = count});
    before += padded(count);
  }
}

void UpdateSummary::before_run(HookContext& context) {
  if (!due(context.global_step() + 1)) return;
  for (const Part& part : parts_)
    copy(context.trainer().context(), before_.as<float>().data() + part.first, part.from,
         static_cast<std::size_t>(part.count) * sizeof(float));
}

void UpdateSummary::collect(HookContext& context, StepSummary& summary) {
  const std::size_t stride = ratios_ ? 2 : 1;
  for (std::size_t i = 0; i < variables().size(); ++i) {
    const DistributionTotal update = total(i * stride);
    append(summary, "updates", context.variables()[variables()[i]], update);
    if (!ratios_) continue;
    const DistributionTotal values = total(i * stride + 1);
    const double squares =
        update.not_finite + values.not_finite > 0 ? std::nan("") : update.moments.sum_squares;
    // A variable that is all zero has no ratio.
    if (values.moments.sum_squares != 0)
      summary.numbers.push_back({ratio_tags_[i], std::sqrt(squares / values.moments.sum_squares)});
  }
}

extern const SummaryPart kUpdateSummary = {
    "updates", "Histograms of what a step adds to variables, and how large that is beside them.", kTable,
    make_summary<UpdateSummary>};

}  // namespace lockstep
