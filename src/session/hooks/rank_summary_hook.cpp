// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/hooks/rank_summary_hook.h"

#include <algorithm>

namespace lockstep {

void RankSummaryHook::begin(HookContext& context) {
  context.add_summary([this](std::vector<RunReports::Value>& values) { publish(values); });
}

void RankSummaryHook::after_create_session(HookContext& context) {
  sums_.assign(static_cast<std::size_t>(context.rank_times().ranks()), {});
  steps_ = 0;
}

Verdict RankSummaryHook::before_update(HookContext& context, const StepResult&) {
  const RankTimes& times = context.rank_times();
  if (!times.known()) return Verdict::update;
  ++steps_;
  for (int rank = 0; rank < times.ranks(); ++rank) {
    const RankTime one = times.of_rank(rank);
    RankTime& sum = sums_[static_cast<std::size_t>(rank)];
    sum.step_seconds += one.step_seconds;
    sum.work_seconds += one.work_seconds;
    sum.communication_seconds += one.communication_seconds;
    sum.input_seconds += one.input_seconds;
    sum.peak_memory_bytes = std::max(sum.peak_memory_bytes, one.peak_memory_bytes);
  }
  return Verdict::update;
}

void RankSummaryHook::publish(std::vector<RunReports::Value>& values) {
  if (steps_ == 0) return;
  const auto steps = static_cast<double>(steps_);
  double step = 0, most = 0, least = sums_.front().work_seconds, all = 0, communication = 0, input = 0,
         memory = 0;
  for (const RankTime& sum : sums_) {
    step = std::max(step, sum.step_seconds);
    most = std::max(most, sum.work_seconds);
    least = std::min(least, sum.work_seconds);
    all += sum.step_seconds;
    communication += sum.communication_seconds;
    input += sum.input_seconds;
    memory = std::max(memory, sum.peak_memory_bytes);
  }
  values.push_back({"ranks/step_seconds_max", step / steps});
  values.push_back({"ranks/work_seconds_max", most / steps});
  values.push_back({"ranks/work_seconds_min", least / steps});
  values.push_back({"ranks/work_spread", most > 0 ? (most - least) / most : 0});
  values.push_back({"ranks/communication_share", all > 0 ? communication / all : 0});
  values.push_back({"ranks/input_share", all > 0 ? input / all : 0});
  values.push_back({"ranks/memory_gb", 1e-9 * memory});
  std::ranges::fill(sums_, RankTime{});
  steps_ = 0;
}

}  // namespace lockstep
