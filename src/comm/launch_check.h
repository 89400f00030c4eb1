// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Starts that work but not as they were meant: ranks that were bound to the same few cores, and an mpirun of
// another Open MPI than the library of the program. (Ranks that do not know of each other: environment.h.)
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/communicator.h"

namespace lockstep {

/// Where a rank may run.
struct RankCores {
  std::string host;
  std::string cores;   ///< "0-7,16"
  int num_cores = 0;   ///< that it may use
  int host_cores = 0;  ///< that its host has
};
/// One line for each set of cores that more ranks are bound to than it has cores. Ranks that may use all
/// cores of their host are not bound, however many there are.
std::vector<std::string> shared_core_warnings(std::span<const RankCores> ranks);

/// A line if the launcher has loaded another libopen-pal, Open MPI's base, than this process. Both are the
/// text of a /proc/PID/maps; empty, or without that library: not an mpirun, nothing is said.
std::string foreign_launcher_warning(std::string_view maps_of_launcher, std::string_view own_maps);

/// All ranks, right after the start: what there is to say, the same on all of them. Empty: all is well.
std::vector<std::string> launch_warnings(Communicator& world);

}  // namespace lockstep
