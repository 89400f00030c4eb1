// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What `lockstep doctor` finds, and its checks. Each takes two seconds at most.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "comm/environment.h"

namespace lockstep {

struct Finding {
  enum class State {
    good,
    absent,  ///< there is none, and nothing is wrong about that
    warning,
    failure
  };
  State state = State::good;
  std::string name;  ///< "disk"
  std::string text;
  std::string advice = {};
};
using Findings = std::vector<Finding>;

/// The number of ranks on this rank's host, and which of them this one is.
struct PlaceOnHost {
  int ranks = 1, rank = 0;
};
PlaceOnHost place_on_host(const CommEnvironment& environment);

// Checks. All ranks call each; the findings are those of rank 0, and only there complete.
Findings check_versions(CommEnvironment& environment);
Findings check_cores(CommEnvironment& environment);
Findings check_memory(CommEnvironment& environment);
Findings check_messages(CommEnvironment& environment);
Findings check_gpus(CommEnvironment& environment);
/// Shared memory of killed processes on each host, which `remove` removes.
Findings check_segments(CommEnvironment& environment, bool remove);
// Rank 0 alone: it writes all files.
Findings check_disk(const std::string& folder);
Findings check_hdf5(const std::string& folder);

}  // namespace lockstep
