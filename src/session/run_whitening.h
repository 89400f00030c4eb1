// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// whitening.npy of a run directory: the mean, and below it the matrix that a sample's deviation from it is
// multiplied with (whitening.h), as computed when the run began; of the input NAME of data.inputs:
// whitening-NAME.npy. Every later job and command uses these numbers. On-disk names: do not change.
#pragma once

#include <string>

#include "data/dataset.h"
#include "data/whiten_by.h"
#include "io/checkpoint.h"

namespace lockstep {

/// Adds the files that there are for the data.
void add_whitening(const Dataset& data, KeptFiles& kept);
/// The whitening of an input ("": the only one), from `kept` or else from the run directory; null: from the
/// latter. Throws Error(data) if there is no file, or another one. The chief.
Whitening kept_whitening(const std::string& run_dir, const std::string& input, const KeptFiles* kept);

}  // namespace lockstep
