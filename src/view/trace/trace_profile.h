// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads the profiles of a run (session/trace_file.h).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {

/// Times in microseconds on the clock of rank 0, from the begin of the profile.
struct ProfileSpan {
  std::string category, name;
  int rank = 0, thread = 0;
  double begin = 0, duration = 0;
};
struct ProfileArrow {
  std::string name;
  int from_rank = 0, from_thread = 0, to_rank = 0, to_thread = 0;
  double begin = 0, end = 0;
  double waited = -1;  ///< of the other rank in a collective call; -1: a message
};
struct TraceProfile {
  std::string path;
  std::int64_t first_step = 0, last_step = 0;
  double begin_time = 0;                               ///< seconds since 1970; 0: not known
  double clock_error = 0;                              ///< the largest of all ranks
  std::map<int, std::string> ranks;                    ///< "rank 0 (host)"
  std::map<std::pair<int, int>, std::string> threads;  ///< by rank and thread
  std::vector<ProfileSpan> spans;
  std::vector<ProfileArrow> arrows;

  std::int64_t steps() const { return last_step - first_step + 1; }
};

/// Throws Error(data) for what is no profile.
TraceProfile read_profile(const std::string& path);
/// All of a run, by their first step. Throws Error(config) if there is none.
std::vector<TraceProfile> read_profiles(const std::string& run_dir);

/// One file for Perfetto: the profiles one after the other on one clock, with ids of arrows that differ.
/// Profiles without begin_time follow the one before.
std::string merged_trace(std::vector<TraceProfile> profiles);

/// What took how long: per rank, per layer, and who waited for whom.
std::string trace_summary(const TraceProfile& profile);

}  // namespace lockstep
