// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Passes the results of evaluations to the schedules that follow a metric (reduce_on_plateau), and keeps
// their state in checkpoints. The results are the same on all ranks, so the schedules are too.
#pragma once

#include <string>
#include <vector>

#include "io/checkpoint.h"
#include "session/hook.h"
#include "train/run_schedules.h"

namespace lockstep {

class ScheduleHook : public Hook {
 public:
  /// `schedules` outlives it.
  explicit ScheduleHook(const RunSchedules& schedules);
  /// No schedule follows a metric: the hook is not needed.
  bool empty() const { return followed_.empty(); }
  /// The state in checkpoints, for those who continue without a session.
  std::vector<CheckpointTensor> tensors() const;
  void begin(HookContext& context) override;
  /// Called after the evaluation hook.
  void after_run(HookContext& context, const StepResult& result) override;

 private:
  struct Followed {
    std::string option;
    MetricFollower* follower;
  };
  std::vector<Followed> followed_;
  std::uint64_t seen_version_ = 0;
};

}  // namespace lockstep
