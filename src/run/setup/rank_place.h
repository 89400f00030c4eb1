// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Where a rank computes: its device, its cores, and the ranks that share its host.
#pragma once

#include <string>

#include "comm/environment.h"
#include "run/setup/compute_device.h"

namespace lockstep {

struct RankPlace {
  ComputeDevice device;
  std::string device_table;  ///< a line per rank; empty on CPUs
  bool shares_gpus = false;  ///< several ranks compute on one GPU
  int ranks_on_host = 1;     ///< this rank among them
  int cores = 1;             ///< that this rank may count as its own
};

/// All ranks. Throws SharedError for a device that a rank does not have.
RankPlace place_of_rank(CommEnvironment& environment, const Config& config);

}  // namespace lockstep
