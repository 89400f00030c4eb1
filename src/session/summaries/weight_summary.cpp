// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/summaries/weight_summary.h"

#include "session/hook_context.h"
#include "session/run_names.h"
#include "session/summaries/chosen_names.h"
#include "session/summaries/histogram_data.h"

namespace lockstep {

namespace {

constexpr ParamSpec kTable[] = {
    {"variables", ParamType::strings, "null", "or null",
     "Patterns of the variables, moving statistics among them. null: all.", Change::free},
    {"every_steps", ParamType::integer, "100", "[1, 1e12]", "At multiples of so many steps.", Change::free},
};

}  // namespace

std::span<const ParamSpec> WeightSummary::table() { return kTable; }

WeightSummary::WeightSummary(const Params& options)
    : Hook("summary.weights"), options_(options), timer_(options.integer("every_steps"), {}) {}

void WeightSummary::check(const RunNames& names) const {
  chosen_names(options_, "variables", names.variables);
}

void WeightSummary::begin(HookContext& context) {
  const VariableStore& store = context.variables();
  variables_ = chosen_variables(options_, store, false);
  std::vector<std::int64_t> counts;
  for (const VariableId id : variables_) {
    counts.push_back(store[id].shape.num_elements());
    arrays_.push_back({.values = store.value(id), .count = counts.back()});
  }
  meter_ = std::make_unique<DistributionMeter>(context.trainer().context(), context.control(), counts);
}

void WeightSummary::after_run(HookContext& context, const StepResult& result) {
  if (!timer_.due_by_step(result.step)) return;
  meter_->measure(arrays_);
  if (!context.reports().has_events()) return;
  std::vector<SummaryValue> values;
  for (std::size_t i = 0; i < variables_.size(); ++i)
    append_histogram(values, "weights/" + context.variables()[variables_[i]].name, meter_->total(i));
  context.reports().summary(RunReports::Split::train, result.step, std::move(values));
}

}  // namespace lockstep
