// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/hooks/stop_hooks.h"

#include "session/hook_context.h"

namespace lockstep {

void StopAtStepHook::after_run(HookContext& context, const StepResult& result) {
  if (result.step >= last_step_) context.stop_now();
}

void StopAfterStepsHook::after_create_session(HookContext& context) {
  if (last_step_ < 0) last_step_ = context.global_step() + steps_;
}

void StopAfterStepsHook::after_run(HookContext& context, const StepResult& result) {
  if (result.step >= last_step_) context.stop_now(fmt::format("{} steps are done", steps_));
}

void StopAfterEpochsHook::after_create_session(HookContext& context) {
  // The samples that are left out may be the last ones.
  if (context.rolled_back() && context.cursor().epoch >= epochs_) context.stop_now();
}

void StopAfterEpochsHook::after_run(HookContext& context, const StepResult& result) {
  if (result.cursor.epoch >= epochs_) context.stop_now();
}

void StopAfterSecondsHook::before_run(HookContext& context) {
  if (since_.seconds() >= seconds_) context.request_stop(fmt::format("{} seconds have passed", seconds_));
}

}  // namespace lockstep
