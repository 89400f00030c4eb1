// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/hooks/drift_check_hook.h"

#include "comm/startup_check.h"
#include "driver/launch.h"
#include "driver/monitored_session.h"

namespace lockstep {

void DriftCheckHook::after_run(MonitoredSession& session, const StepResult& result) {
  if (every_steps_ > 0 && result.step % every_steps_ == 0) check(session, result.step);
}

void DriftCheckHook::end(MonitoredSession& session) {
  if (every_steps_ > 0 && checked_step_ != session.global_step()) check(session, session.global_step());
}

void DriftCheckHook::check(MonitoredSession& session, std::int64_t step) {
  checked_step_ = step;
  shared([&] {
    require_same_bits(session.control(), session.variables().hash(),
                      fmt::format("the variables after step {}", step).c_str());
  });
}

}  // namespace lockstep
