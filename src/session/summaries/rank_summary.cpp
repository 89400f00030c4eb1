// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/summaries/rank_summary.h"

#include <fmt/format.h>

#include <algorithm>

#include "comm/communicator.h"
#include "config/option.h"
#include "session/hook_context.h"
#include "session/summaries/summary_part.h"

namespace lockstep {

namespace {

using Options = RankSummary::Options;
constexpr ParamSpec kTable[] = {
    option<&Options::every_steps>("every_steps", "null", between(1, 1e12).or_null(),
                                  "At multiples of so many steps. null: in the records of loss and metrics.",
                                  Change::free),
    option<&Options::each_rank>("each_rank", "false", {}, "Also the times of each rank.", Change::free),
};

}  // namespace

RankSummary::RankSummary(const Options& options)
    : SummaryHook("summary.ranks", HookScope::chief_only),
      options_(options),
      timer_(options.every_steps, {}) {}

RecordedText RankSummary::recorded(const Run&) const {
  return {.when = options_.every_steps ? every_text(*options_.every_steps) : "with loss and metrics",
          .numbers = options_.each_rank ? "times and memory of the ranks, times of each"
                                        : "times and memory of the ranks"};
}

void RankSummary::begin(HookContext& context) {
  if (timer_.never())
    context.add_summary([this](std::vector<RunReports::Value>& values) { publish(values); });
}

void RankSummary::after_create_session(HookContext& context) {
  sum_ = {};
  if (!options_.each_rank) return;
  tags_.clear();
  for (int rank = 0; rank < context.control().size(); ++rank)
    tags_.push_back({.step = fmt::format("ranks/step_seconds/{}", rank),
                     .work = fmt::format("ranks/work_seconds/{}", rank),
                     .communication = fmt::format("ranks/communication_seconds/{}", rank),
                     .input = fmt::format("ranks/input_seconds/{}", rank)});
}

Verdict RankSummary::before_update(HookContext& context, const StepResult& result) {
  sum_.step_done(context.rank_times(), result.step, result.samples);
  return Verdict::update;
}

void RankSummary::after_run(HookContext& context, const StepResult& result) {
  if (!timer_.due_by_step(result.step)) return;
  StepSummary summary;
  publish(summary.numbers);
  summary.write(context, result);
}

void RankSummary::publish(std::vector<RunReports::Value>& values) {
  const std::optional<RanksReport> report = sum_.take();
  if (!report) return;
  double step = 0, most = 0, least = report->ranks.front().time.work_seconds, all = 0, communication = 0,
         input = 0, memory = 0, gpu_memory = 0;
  for (const RankReport& rank : report->ranks) {
    const RankTime& mean = rank.time;
    step = std::max(step, mean.step_seconds);
    most = std::max(most, mean.work_seconds);
    least = std::min(least, mean.work_seconds);
    all += mean.step_seconds;
    communication += mean.communication_seconds;
    input += mean.input_seconds;
    memory = std::max(memory, mean.peak_memory_bytes);
    gpu_memory = std::max(gpu_memory, mean.peak_gpu_bytes);
  }
  values.push_back({"ranks/step_seconds_max", step});
  values.push_back({"ranks/work_seconds_max", most});
  values.push_back({"ranks/work_seconds_min", least});
  values.push_back({"ranks/work_spread", most > 0 ? (most - least) / most : 0});
  values.push_back({"ranks/communication_share", all > 0 ? communication / all : 0});
  values.push_back({"ranks/input_share", all > 0 ? input / all : 0});
  values.push_back({"ranks/memory_gb", 1e-9 * memory});
  if (gpu_memory > 0) values.push_back({"ranks/gpu_memory_gb", 1e-9 * gpu_memory});
  for (std::size_t rank = 0; rank < std::min(tags_.size(), report->ranks.size()); ++rank) {
    const RankTime& mean = report->ranks[rank].time;
    values.push_back({tags_[rank].step, mean.step_seconds});
    values.push_back({tags_[rank].work, mean.work_seconds});
    values.push_back({tags_[rank].communication, mean.communication_seconds});
    values.push_back({tags_[rank].input, mean.input_seconds});
  }
}

extern const SummaryPart kRankSummary = {
    "ranks",
    "What the ranks spend their steps on: ranks/work_seconds_max, ranks/communication_share and others.",
    kTable, make_summary<RankSummary>};

}  // namespace lockstep
