// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/summaries/weight_summary.h"

#include "session/hook_context.h"

namespace lockstep {

namespace {

constexpr ParamSpec kTable[] = {
    {"variables", ParamType::strings, "null", or_null(),
     "Patterns of the variables, moving statistics among them. null: all.", Change::free},
    {"every_steps", ParamType::integer, "100", between(1, 1e12),
     "After the first step, and at multiples of so many.", Change::free},
};

}  // namespace

std::span<const ParamSpec> WeightSummary::table() { return kTable; }

WeightSummary::WeightSummary(const Params& options)
    : VariableSummary("summary.weights", options, Of::all_variables, true) {}

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

}  // namespace lockstep
