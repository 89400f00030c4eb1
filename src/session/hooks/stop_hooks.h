// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Hooks that end training: at a step, or after N steps, epochs or seconds.
#pragma once

#include "core/timer.h"
#include "session/hook.h"

namespace lockstep {

/// Stops after the step that makes global_step `last_step`.
class StopAtStepHook : public Hook {
 public:
  explicit StopAtStepHook(std::int64_t last_step) : Hook("stop_at_step"), last_step_(last_step) {}
  void after_run(HookContext& context, const StepResult& result) override;

 private:
  std::int64_t last_step_;
};

/// Stops `steps` steps after the one at which the session was first created. A recovery does not restart the
/// count.
class StopAfterStepsHook : public Hook {
 public:
  explicit StopAfterStepsHook(std::int64_t steps) : Hook("stop_after_steps"), steps_(steps) {}
  void after_create_session(HookContext& context) override;
  void after_run(HookContext& context, const StepResult& result) override;

 private:
  std::int64_t steps_, last_step_ = -1;
};

/// Stops when `epochs` epochs of the run are done.
class StopAfterEpochsHook : public Hook {
 public:
  explicit StopAfterEpochsHook(std::int64_t epochs) : Hook("stop_after_epochs"), epochs_(epochs) {}
  void after_create_session(HookContext& context) override;
  void after_run(HookContext& context, const StepResult& result) override;

 private:
  std::int64_t epochs_;
};

/// Stops after the first step that begins at least `seconds` after begin, by the clock of the chief.
class StopAfterSecondsHook : public Hook {
 public:
  explicit StopAfterSecondsHook(double seconds)
      : Hook("stop_after_seconds", HookScope::chief_only), seconds_(seconds) {}
  void begin(HookContext&) override { since_.restart(); }
  void before_run(HookContext& context) override;

 private:
  double seconds_;
  Timer since_;
};

}  // namespace lockstep
