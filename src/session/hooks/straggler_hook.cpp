// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/hooks/straggler_hook.h"

#include "core/log.h"
#include "session/hook_context.h"

namespace lockstep {

StragglerHook::StragglerHook(int ranks, StragglerOptions options)
    : Hook("straggler"),
      options_(options),
      detector_(ranks, options),
      seconds_(static_cast<std::size_t>(ranks)) {}

Verdict StragglerHook::before_update(HookContext& context, const StepResult&) {
  const RankTimes& times = context.rank_times();
  if (!times.known() || !context.is_chief()) return Verdict::update;
  for (std::size_t rank = 0; rank < seconds_.size(); ++rank)
    seconds_[rank] = times.of_rank(static_cast<int>(rank)).work_seconds;
  if (const auto straggler = detector_.step(seconds_))
    log_warning("{}", straggler_message(*straggler, options_,
                                        times.hosts()[static_cast<std::size_t>(straggler->rank)]));
  return Verdict::update;
}

}  // namespace lockstep
