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

std::string every_text(const Params& options) {
  const std::int64_t steps = options.integer("every_steps");
  return steps == 1 ? "every step" : fmt::format("every {} steps", steps);
}

std::string from_the_first_text(const Params& options) {
  const std::string every = every_text(options);
  return options.integer("every_steps") == 1 ? every : "after the first step and " + every;
}

}  // namespace lockstep
