// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/hooks/rank_summary_hook.h"

#include <algorithm>

namespace lockstep {

void RankSummaryHook::begin(HookContext& context) {
  context.add_summary([this](std::vector<RunReports::Value>& values) { publish(values); });
}

void RankSummaryHook::after_create_session(HookContext&) { sum_ = {}; }

Verdict RankSummaryHook::before_update(HookContext& context, const StepResult& result) {
  sum_.step_done(context.rank_times(), result.step, result.samples);
  return Verdict::update;
}

void RankSummaryHook::publish(std::vector<RunReports::Value>& values) {
  const std::optional<RanksReport> report = sum_.take();
  if (!report) return;
  double step = 0, most = 0, least = report->ranks.front().time.work_seconds, all = 0, communication = 0,
         input = 0, memory = 0;
  for (const RankReport& rank : report->ranks) {
    const RankTime& mean = rank.time;
    step = std::max(step, mean.step_seconds);
    most = std::max(most, mean.work_seconds);
    least = std::min(least, mean.work_seconds);
    all += mean.step_seconds;
    communication += mean.communication_seconds;
    input += mean.input_seconds;
    memory = std::max(memory, mean.peak_memory_bytes);
  }
  values.push_back({"ranks/step_seconds_max", step});
  values.push_back({"ranks/work_seconds_max", most});
  values.push_back({"ranks/work_seconds_min", least});
  values.push_back({"ranks/work_spread", most > 0 ? (most - least) / most : 0});
  values.push_back({"ranks/communication_share", all > 0 ? communication / all : 0});
  values.push_back({"ranks/input_share", all > 0 ? input / all : 0});
  values.push_back({"ranks/memory_gb", 1e-9 * memory});
}

}  // namespace lockstep
