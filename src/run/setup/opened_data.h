// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The data sets of a command between the opening of their files and the reading of their samples. Ranks share
// the search for bad records.
#pragma once

#include <optional>
#include <string>

#include "comm/communicator.h"
#include "data/opened_sets.h"
#include "run/sections/config.h"

namespace lockstep {

struct OpenedData {
  std::optional<OpenedSets> train, eval;  ///< empty: not wanted, or none
};

/// This rank alone. `trained`: see OpenedSets; null: the evaluation set may read the files of the training
/// set.
OpenedData open_data(const Config& config, bool train, bool eval, const Dataset* trained = nullptr);

/// Finds the bad records of both sets, the same on all ranks. `kept_in`: the run directory whose list the
/// training set takes; empty: it is searched. All ranks. Throws SharedError.
void share_bad_records(Communicator& world, OpenedData& data, const std::string& kept_in, int threads);

}  // namespace lockstep
