// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What is recorded while training: loss, accuracy and rate now and then, and the speed.
#pragma once

#include "core/timer.h"
#include "session/hook.h"
#include "session/hooks/hook_timer.h"

namespace lockstep {

/// Loss, accuracy, learning rate, norm of the gradients and samples/s into event files and metrics.jsonl, and
/// whatever the reports were given since. Creates and closes the files; what an earlier attempt wrote beyond
/// the session's step is dropped. The chief writes; the other ranks are there because a GPU is waited for
/// where the norm is recorded, in the same steps on all of them: the norm is that of a sum to which every
/// rank's GPU has to come.
class SummarySaverHook : public Hook {
 public:
  explicit SummarySaverHook(HookTimer timer) : Hook("summary_saver"), timer_(timer) {}
  void after_create_session(HookContext& context) override;
  void after_run(HookContext& context, const StepResult& result) override;
  void end(HookContext& context) override;

 private:
  HookTimer timer_;
  Timer since_;
  std::int64_t samples_ = 0;
};

/// `global_step/sec` and `samples/sec` into the event file. The first time it only begins to count.
class StepCounterHook : public Hook {
 public:
  explicit StepCounterHook(HookTimer timer) : Hook("step_counter", HookScope::chief_only), timer_(timer) {}
  void after_create_session(HookContext&) override;
  void after_run(HookContext& context, const StepResult& result) override;

 private:
  HookTimer timer_;
  Timer since_;
  std::int64_t steps_ = 0, samples_ = 0;
};

}  // namespace lockstep
