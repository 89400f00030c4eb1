// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/hooks/stop_hooks.h"

#include "config/option.h"
#include "session/hook_context.h"
#include "session/hooks/hook_table.h"

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

namespace {

struct StopAfterStepsOptions {
  std::int64_t steps = 0;
};
constexpr ParamSpec kStopAfterSteps[] = {option<&StopAfterStepsOptions::steps>(
    "steps", kRequired, between(1, 1e12), "Steps of this session. A resumed session counts from 0.",
    Change::free)};

struct StopAfterSecondsOptions {
  double seconds = 0;
};
constexpr ParamSpec kStopAfterSeconds[] = {option<&StopAfterSecondsOptions::seconds>(
    "seconds", kRequired, above(0).up_to(1e9, "seconds"),
    "From the start of the session, by the clock of rank 0.", Change::free)};

}  // namespace

extern const HookEntry kStopAfterStepsHook = {
    "stop_after_steps", "Ends the session after so many steps, with a checkpoint.", kStopAfterSteps,
    [](const Params& p, const HookSetting&) -> std::unique_ptr<Hook> {
      return std::make_unique<StopAfterStepsHook>(p.as<StopAfterStepsOptions>().steps);
    },
    Change::free};

extern const HookEntry kStopAfterSecondsHook = {
    "stop_after_seconds", "Ends the session after so much time, with a checkpoint.", kStopAfterSeconds,
    [](const Params& p, const HookSetting&) -> std::unique_ptr<Hook> {
      return std::make_unique<StopAfterSecondsHook>(p.as<StopAfterSecondsOptions>().seconds);
    },
    Change::free};

}  // namespace lockstep
