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
  UsedDataset train, eval;          ///< without data: not wanted, or none
  bool train_is_described = false;  ///< the training set has no samples (RunNeeds::described)

  /// The training set, if there is one.
  const Dataset& first() const { return train ? *train : *eval; }
  /// Before they are normalised.
  bool knows_shapes() const;
};

/// The training set as the checkpoint of `needs` describes it; without data if it does not, or if the
/// description is not wanted or that of another configuration.
UsedDataset described_training_set(const Config& config, const RunNeeds& needs);

/// The error about the files of the training set, for a command that only wants the form of its samples, if
/// the checkpoint does not describe them.
Error without_description(const Error& error, const RunNeeds& needs);

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
