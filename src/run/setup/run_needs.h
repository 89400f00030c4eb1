// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What a command needs of a run.
#pragma once

#include <memory>
#include <string>

#include "io/checkpoint.h"

namespace lockstep {

struct RunNeeds {
  bool train = false, eval = false;  ///< data sets
  bool updates = false;              ///< the variables are updated: gradients and slots take memory
  int ranks = 1;                     ///< that share the slots with optimizer.shard
  int ranks_on_host = 1;             ///< that share the memory for data
  /// The run directory that keeps the numbers of data.normalize; empty: they are computed.
  std::string kept_in = {};
  /// What the run's checkpoint keeps of the data, which comes first; null: nothing.
  std::shared_ptr<const KeptFiles> kept = {};
  /// Without updates: if `kept` describes the samples of the training set, no file of it is opened. The set
  /// then has its form and no samples.
  bool described = false;
  /// The run directory in which readers keep where records are, also of a new run; empty: none.
  std::string index_in = {};
};

}  // namespace lockstep
