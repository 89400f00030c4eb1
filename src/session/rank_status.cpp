// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/rank_status.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "io/atomic_file.h"
#include "io/json.h"

namespace lockstep {

namespace {

constexpr double kLeastSeconds = 1e-3;

double number(const Json& json, const char* name) {
  const Json& found = json[name];
  return found.is_number() ? found.get<double>() : 0;
}

}  // namespace

std::string to_json(const RanksReport& report) {
  Json ranks = Json::array();
  int rank = 0;
  for (const RankReport& one : report.ranks)
    ranks.push_back({{"rank", rank++},
                     {"host", one.host},
                     {"step_seconds", one.time.step_seconds},
                     {"work_seconds", one.time.work_seconds},
                     {"communication_seconds", one.time.communication_seconds},
                     {"input_seconds", one.time.input_seconds},
                     {"peak_memory_bytes", one.time.peak_memory_bytes},
                     {"peak_gpu_bytes", one.time.peak_gpu_bytes}});
  const Json json = {{"format", 1},
                     {"job_begin", report.job_begin},
                     {"time", report.time},
                     {"step", report.step},
                     {"steps", report.steps},
                     {"samples_per_second", report.samples_per_second},
                     {"straggler_factor", report.straggler_factor},
                     {"ranks", ranks}};
  return json.dump();
}

std::optional<RanksReport> ranks_report(std::string_view text) {
  const Json json = Json::parse_or_null(text);
  if (!json["ranks"].is_array()) return std::nullopt;
  RanksReport report{.job_begin = number(json, "job_begin"),
                     .time = number(json, "time"),
                     .step = static_cast<std::int64_t>(number(json, "step")),
                     .steps = static_cast<std::int64_t>(number(json, "steps")),
                     .samples_per_second = number(json, "samples_per_second"),
                     .straggler_factor = number(json, "straggler_factor"),
                     .ranks = {}};
  for (const Json& one : json["ranks"]) {
    if (!one.is_object()) return std::nullopt;
    RankReport rank;
    if (one["host"].is_string()) rank.host = one["host"].string();
    rank.time = {.step_seconds = number(one, "step_seconds"),
                 .work_seconds = number(one, "work_seconds"),
                 .communication_seconds = number(one, "communication_seconds"),
                 .input_seconds = number(one, "input_seconds"),
                 .peak_memory_bytes = number(one, "peak_memory_bytes"),
                 .peak_gpu_bytes = number(one, "peak_gpu_bytes")};
    report.ranks.push_back(std::move(rank));
  }
  return report;
}

std::optional<RanksReport> read_ranks(const std::string& run_dir) {
  const std::string path = run_dir + "/ranks.json";
  std::error_code code;
  if (!std::filesystem::exists(path, code)) return std::nullopt;
  return ranks_report(read_whole_file(path));
}

std::vector<bool> stragglers_of(const RanksReport& report) {
  std::vector<bool> slow(report.ranks.size());
  if (report.straggler_factor <= 0 || report.ranks.size() < 2) return slow;
  std::vector<double> work;
  for (const RankReport& rank : report.ranks) work.push_back(rank.time.work_seconds);
  std::ranges::sort(work);
  const std::size_t middle = work.size() / 2;
  const double median = work.size() % 2 == 1 ? work[middle] : (work[middle - 1] + work[middle]) / 2;
  for (std::size_t i = 0; i < slow.size(); ++i) {
    const double mine = report.ranks[i].time.work_seconds;
    slow[i] = mine > report.straggler_factor * median && mine - median >= kLeastSeconds;
  }
  return slow;
}

void RankTimesSum::step_done(const RankTimes& times, std::int64_t step, std::int64_t samples) {
  if (!times.known()) return;
  if (hosts_.empty()) {
    hosts_ = times.hosts();
    sums_.resize(hosts_.size());
  }
  step_ = step;
  ++steps_;
  samples_ += samples;
  for (int rank = 0; rank < times.ranks(); ++rank) {
    const RankTime one = times.of_rank(rank);
    RankTime& sum = sums_[static_cast<std::size_t>(rank)];
    sum.step_seconds += one.step_seconds;
    sum.work_seconds += one.work_seconds;
    sum.communication_seconds += one.communication_seconds;
    sum.input_seconds += one.input_seconds;
    sum.peak_memory_bytes = std::max(sum.peak_memory_bytes, one.peak_memory_bytes);
    sum.peak_gpu_bytes = std::max(sum.peak_gpu_bytes, one.peak_gpu_bytes);
  }
}

std::optional<RanksReport> RankTimesSum::take() {
  if (steps_ == 0) return std::nullopt;
  RanksReport report{.step = step_, .steps = steps_, .straggler_factor = factor_, .ranks = {}};
  const auto count = static_cast<double>(steps_);
  double longest = 0;
  for (std::size_t rank = 0; rank < sums_.size(); ++rank) {
    RankTime mean = std::exchange(sums_[rank], {});
    longest = std::max(longest, mean.step_seconds);
    mean.step_seconds /= count;
    mean.work_seconds /= count;
    mean.communication_seconds /= count;
    mean.input_seconds /= count;
    report.ranks.push_back({hosts_[rank], mean});
  }
  if (longest > 0) report.samples_per_second = static_cast<double>(samples_) / longest;
  steps_ = samples_ = 0;
  return report;
}

}  // namespace lockstep
