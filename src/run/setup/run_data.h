// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The data sets of a run. Their files are opened, their bad records are found, and then their samples are
// read, or can be.
#pragma once

#include "comm/environment.h"
#include "data/used_dataset.h"
#include "run/sections/config.h"
#include "run/setup/opened_data.h"
#include "run/setup/rank_place.h"
#include "run/setup/run_needs.h"

namespace lockstep {

struct RunData {
  UsedDataset train, eval;  ///< without data: not wanted, or none

  /// The training set, if there is one.
  const Dataset& first() const { return train ? *train : *eval; }
  /// Before they are normalised.
  bool knows_shapes() const;
};

/// The sets of opened files whose bad records are known. This rank alone. Throws Error(config) or
/// Error(data).
RunData read_data(const Config& config, const RunNeeds& needs, OpenedData opened);

/// The whole way from files to sets, which are not yet normalised: ranks share the search for bad records,
/// and those of a host the memory for samples. All ranks. Throws SharedError.
RunData read_run_data(CommEnvironment& environment, const Config& config, RunNeeds needs,
                      const RankPlace& place);

/// How the training and the evaluation set are used.
DatasetUse use_of_training_set(const Config& config, const RunNeeds& needs);
DatasetUse use_of_evaluation_set(const RunNeeds& needs);

}  // namespace lockstep
