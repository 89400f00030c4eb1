// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Detects launch mistakes that do not fail: several ranks bound to the same few cores, and an mpirun of
// another Open MPI installation than the program's library. (environment.h detects ranks that do not know of
// each other.)
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/communicator.h"

namespace lockstep {

/// The cores that a rank may use.
struct RankCores {
  std::string host;
  std::string cores;   ///< "0-7,16"
  int num_cores = 0;   ///< number of these cores
  int host_cores = 0;  ///< number of cores of its host
};
/// Returns a warning for each set of cores that has more ranks bound to it than cores. Ranks that may use all
/// cores of their host count as not bound.
std::vector<std::string> shared_core_warnings(std::span<const RankCores> ranks);

/// Returns a warning if the launcher has loaded another libopen-pal (Open MPI's base library) than this
/// process. Both arguments are the text of a /proc/PID/maps. Returns nothing if either is empty or lacks that
/// library: the launcher is then not an mpirun, or not known.
std::string foreign_launcher_warning(std::string_view maps_of_launcher, std::string_view own_maps);

/// All ranks, right after the start. Returns the warnings, the same on all ranks; empty if there are none.
std::vector<std::string> launch_warnings(Communicator& world);

}  // namespace lockstep
