// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// ranks.json: what the ranks of the running job spend their steps on, for `lockstep top`. On-disk names: do
// not change. The chief writes it next to status.json (run_status.h) at each heartbeat, with the means over
// the steps since the last one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "session/rank_times.h"

namespace lockstep {

struct RankReport {
  std::string host;
  RankTime time;  ///< means over `steps`
};
struct RanksReport {
  double job_begin = 0;  ///< of the job that wrote it (JobRecord::begin)
  double time = 0;       ///< seconds since 1970
  std::int64_t step = 0, steps = 0;
  double samples_per_second = 0;  ///< while steps were computed
  double straggler_factor = 0;    ///< of the median of all ranks' work; 0: nothing looks for stragglers
  std::vector<RankReport> ranks;
};
std::string to_json(const RanksReport& report);
/// Nothing if the text is no report. Unknown members are ignored.
std::optional<RanksReport> ranks_report(std::string_view json);
/// The report of a run directory; nothing if there is none. Throws Error(config) if it cannot be read.
std::optional<RanksReport> read_ranks(const std::string& run_dir);
/// Ranks whose work takes more than `straggler_factor` times the median of all, and a millisecond more.
std::vector<bool> stragglers_of(const RanksReport& report);

/// Adds up steps. Its owner guards it.
class RankTimesSum {
 public:
  void set_straggler_factor(double factor) { factor_ = factor; }
  void step_done(const RankTimes& times, std::int64_t step, std::int64_t samples);
  /// Since the last call; nothing if there was no step. Times of the job are left to the caller.
  std::optional<RanksReport> take();

 private:
  double factor_ = 0;
  std::int64_t step_ = 0, steps_ = 0, samples_ = 0;
  std::vector<std::string> hosts_;
  std::vector<RankTime> sums_;
};

}  // namespace lockstep
