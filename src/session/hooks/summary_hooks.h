// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Record the numbers of training and its speed.
#pragma once

#include "core/timer.h"
#include "session/hook.h"
#include "session/hook_timer.h"

namespace lockstep {

/// Writes the step metrics that are meant for summaries, and samples/s, into event files and metrics.jsonl.
/// Creates and closes the files, and drops what an earlier attempt wrote of later steps. The chief writes.
/// The last step of a run that is not interrupted is recorded whatever the timer says; a job that goes on
/// from there drops that record. All ranks read the metrics in the same steps, because a rank that reads one
/// may wait for its GPU, and that for the GPUs of the other ranks (the norm of the summed gradients).
class SummarySaverHook : public Hook {
 public:
  explicit SummarySaverHook(HookTimer timer) : Hook("summary_saver"), timer_(timer) {}
  void after_create_session(HookContext& context) override;
  void after_run(HookContext& context, const StepResult& result) override;
  void end(HookContext& context) override;

 private:
  void drop_last_record(HookContext& context) const;
  void record(HookContext& context, const StepResult& result);

  HookTimer timer_;
  Timer since_;
  std::int64_t samples_ = 0, recorded_step_ = -1;
};

/// Writes `global_step/sec` and `samples/sec` into the event file.
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
