// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/summaries/weight_summary.h"

#include "config/option.h"
#include "session/hook_context.h"
#include "session/summaries/summary_part.h"

namespace lockstep {

namespace {

using Options = WeightSummary::Options;
constexpr ParamSpec kTable[] = {
    option<&Options::variables>("variables", "null", or_null(),
                                "Patterns of the variables, moving statistics among them. null: all.",
                                Change::free),
    option<&Options::every_steps>("every_steps", "100", between(1, 1e12),
                                  "After the first step, and at multiples of so many.", Change::free),
};

}  // namespace

WeightSummary::WeightSummary(Options options)
    : VariableSummary("summary.weights", std::move(options), Of::all_variables) {}

RecordedText WeightSummary::recorded(const Run& run) const { return text_of(run.names); }

void WeightSummary::declare(HookContext& context) {
  const VariableStore& store = context.variables();
  for (const VariableId id : variables())
    arrays().push_back({.values = store.value(id), .count = store[id].shape.num_elements()});
}

void WeightSummary::collect(HookContext& context, StepSummary& summary) {
  for (std::size_t i = 0; i < variables().size(); ++i)
    append(summary, "weights", context.variables()[variables()[i]], total(i));
}

extern const SummaryPart kWeightSummary = {"weights", "Histograms of variables.", kTable,
                                           make_summary<WeightSummary>};

}  // namespace lockstep
