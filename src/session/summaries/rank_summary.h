// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What the ranks spend their steps on (rank_times.h). Means over the steps since the last record:
//
//   ranks/step_seconds_max     of the rank with the longest steps
//   ranks/work_seconds_max     of the rank that works longest in a step, without waiting for others
//   ranks/work_seconds_min     of the one that works shortest
//   ranks/work_spread          (max - min) / max: what the fastest rank loses by waiting for the slowest
//   ranks/communication_share  of the time of all ranks
//   ranks/input_share          likewise
//   ranks/memory_gb            the largest peak of host memory of a process, in 1e9 bytes
//   ranks/gpu_memory_gb        the largest peak of a rank's memory on its GPU; only where there are GPUs
//
// With each_rank also, for each rank R, ranks/step_seconds/R, ranks/work_seconds/R,
// ranks/communication_seconds/R and ranks/input_seconds/R.
#pragma once

#include <string>
#include <vector>

#include "session/hook_timer.h"
#include "session/rank_status.h"
#include "session/summaries/summary_hook.h"

namespace lockstep {

class RankSummary final : public SummaryHook {
 public:
  struct Options {
    std::optional<std::int64_t> every_steps;
    bool each_rank = false;
  };
  explicit RankSummary(const Options& options);

  RecordedText recorded(const Run& run) const override;
  void begin(HookContext& context) override;
  void after_create_session(HookContext&) override;
  Verdict before_update(HookContext& context, const StepResult& result) override;
  void after_run(HookContext& context, const StepResult& result) override;

 private:
  void publish(std::vector<RunReports::Value>& values);

  Options options_;
  HookTimer timer_;  ///< never: with the other numbers of a step
  RankTimesSum sum_;
  struct Tags {
    std::string step, work, communication, input;
  };
  std::vector<Tags> tags_;  ///< by rank, with each_rank
};

}  // namespace lockstep
