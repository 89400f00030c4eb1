// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/hooks/stop_hooks.h"

#include "session/monitored_session.h"

namespace lockstep {

void StopAtStepHook::after_run(MonitoredSession& session, const StepResult& result) {
  if (result.step >= last_step_) session.stop_now();
}

void StopAfterStepsHook::after_create_session(MonitoredSession& session) {
  if (last_step_ < 0) last_step_ = session.global_step() + steps_;
}

void StopAfterStepsHook::after_run(MonitoredSession& session, const StepResult& result) {
  if (result.step >= last_step_) session.stop_now(fmt::format("{} steps are done", steps_));
}

void StopAfterEpochsHook::after_run(MonitoredSession& session, const StepResult& result) {
  if (result.cursor.epoch >= epochs_) session.stop_now();
}

void StopAfterSecondsHook::before_run(MonitoredSession& session) {
  if (since_.seconds() >= seconds_) session.request_stop(fmt::format("{} seconds have passed", seconds_));
}

}  // namespace lockstep
