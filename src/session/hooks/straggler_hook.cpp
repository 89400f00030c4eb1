// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/hooks/straggler_hook.h"

#include "comm/host_names.h"
#include "core/log.h"

namespace lockstep {

StragglerHook::StragglerHook(int ranks, StragglerOptions options)
    : Hook("straggler"),
      options_(options),
      detector_(ranks, options),
      seconds_(static_cast<std::size_t>(ranks)) {}

void StragglerHook::begin(MonitoredSession& session) {
  words_ = session.declare_words(1);
  hosts_ = host_names(session.control());
}

void StragglerHook::before_run(MonitoredSession& session) {
  session.words(words_)[0] = busy_;
  waited_ = session.trainer().communication_seconds();
  since_.restart();
}

Verdict StragglerHook::before_update(MonitoredSession& session, const StepResult&) {
  busy_ = since_.seconds() - (session.trainer().communication_seconds() - waited_);
  if (!std::exchange(measured_, true) || !session.is_chief()) return Verdict::update;
  for (std::size_t rank = 0; rank < seconds_.size(); ++rank)
    seconds_[rank] = session.words_of(words_, static_cast<int>(rank))[0];
  if (const auto straggler = detector_.step(seconds_))
    log_warning("{}",
                straggler_message(*straggler, options_, hosts_[static_cast<std::size_t>(straggler->rank)]));
  return Verdict::update;
}

}  // namespace lockstep
