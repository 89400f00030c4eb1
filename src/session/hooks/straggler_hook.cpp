// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/hooks/straggler_hook.h"

#include "comm/host_names.h"
#include "core/log.h"
#include "session/hook_context.h"

namespace lockstep {

StragglerHook::StragglerHook(int ranks, StragglerOptions options)
    : Hook("straggler"),
      options_(options),
      detector_(ranks, options),
      seconds_(static_cast<std::size_t>(ranks)) {}

void StragglerHook::begin(HookContext& context) {
  slice_ = context.rank_values().declare(1);
  waiting_ = context.step_metrics().find("communication_seconds");
  hosts_ = host_names(context.control());
}

void StragglerHook::before_run(HookContext& context) {
  context.rank_values().mine(slice_)[0] = busy_;
  waited_ = seconds_waited(context);
  since_.restart();
}

double StragglerHook::seconds_waited(HookContext& context) const {
  return context.step_metrics().value(waiting_).value();
}

Verdict StragglerHook::before_update(HookContext& context, const StepResult&) {
  busy_ = since_.seconds() - (seconds_waited(context) - waited_);
  if (!std::exchange(measured_, true) || !context.is_chief()) return Verdict::update;
  for (std::size_t rank = 0; rank < seconds_.size(); ++rank)
    seconds_[rank] = context.rank_values().of_rank(slice_, static_cast<int>(rank))[0];
  if (const auto straggler = detector_.step(seconds_))
    log_warning("{}",
                straggler_message(*straggler, options_, hosts_[static_cast<std::size_t>(straggler->rank)]));
  return Verdict::update;
}

}  // namespace lockstep
