// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/summaries/summary_hook.h"

#include <fmt/format.h>

#include "session/hook_context.h"

namespace lockstep {

void StepSummary::write(HookContext& context, const StepResult& result) {
  if (!events.empty()) context.reports().summary(RunReports::Split::train, result.step, std::move(events));
  if (!numbers.empty())
    context.reports().record(RunReports::Split::train, result.step, result.epoch + 1, numbers);
}

std::string every_text(std::int64_t steps) {
  return steps == 1 ? "every step" : fmt::format("every {} steps", steps);
}

std::string from_the_first_text(std::int64_t steps) {
  const std::string every = every_text(steps);
  return steps == 1 ? every : "after the first step and " + every;
}

}  // namespace lockstep
