// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// data.normalize and data.whiten: the numbers that a run's data sets are normalised and whitened by. A new
// run computes them from its training set, which the ranks share; everything later takes those that the run
// directory keeps.
#pragma once

#include <string>

#include "comm/communicator.h"
#include "data/used_dataset.h"
#include "io/checkpoint.h"

namespace lockstep {

/// Normalises and whitens the sets, which may be null, if the configuration says so. `kept_in`: the run
/// directory with the numbers; empty: they are computed. `kept`: those of its checkpoint, which come first;
/// null: none. All ranks. Throws SharedError.
void normalize_sets(Communicator& world, UsedDataset& train, UsedDataset& eval, const std::string& kept_in,
                    int threads, const KeptFiles* kept = nullptr);

}  // namespace lockstep
