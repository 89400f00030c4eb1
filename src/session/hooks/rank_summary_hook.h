// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `summary.ranks`: what the ranks spend their steps on (rank_times.h), in the records of training. Means over
// the steps since the last record:
//
//   ranks/step_seconds_max     of the rank with the longest steps
//   ranks/work_seconds_max     of the rank that works longest in a step, without waiting for others
//   ranks/work_seconds_min     of the one that works shortest
//   ranks/work_spread          (max - min) / max: what the fastest rank loses by waiting for the slowest
//   ranks/communication_share  of the time of all ranks
//   ranks/input_share          likewise
//   ranks/memory_gb            the largest peak of host memory of a process, in 1e9 bytes
#pragma once

#include <vector>

#include "session/hook.h"
#include "session/hook_context.h"
#include "session/rank_status.h"

namespace lockstep {

class RankSummaryHook : public Hook {
 public:
  RankSummaryHook() : Hook("rank_summary", HookScope::chief_only) {}
  void begin(HookContext& context) override;
  void after_create_session(HookContext&) override;
  Verdict before_update(HookContext& context, const StepResult& result) override;

 private:
  void publish(std::vector<RunReports::Value>& values);

  RankTimesSum sum_;
};

}  // namespace lockstep
