// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What a command needs of a run.
#pragma once

#include <string>

namespace lockstep {

struct RunNeeds {
  bool train = false, eval = false;  ///< data sets
  bool updates = false;              ///< the variables are updated: gradients and slots take memory
  int ranks = 1;                     ///< that share the slots with optimizer.shard
  int ranks_on_host = 1;             ///< that share the memory for data
  /// The run directory that keeps the numbers of data.normalize; empty: they are computed.
  std::string kept_in = {};
  /// The run directory in which readers keep where records are, also of a new run; empty: none.
  std::string index_in = {};
};

}  // namespace lockstep
