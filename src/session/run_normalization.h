// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// normalization.txt of a run directory: a line "mean <tab> std" per channel, as computed when the run began;
// of elements normalization.npy, an array {2, extents of a sample}; of the input NAME of data.inputs:
// normalization-NAME.txt and .npy. Every later job and command uses these numbers.
// On-disk names: do not change.
#pragma once

#include <string>

#include "data/dataset.h"
#include "data/normalize_by.h"
#include "io/checkpoint.h"

namespace lockstep {

/// Adds the files that there are for the data.
void add_normalization(const Dataset& data, KeptFiles& kept);
/// The text of an input's file ("": the only input), from `kept` or else from the run directory; null: from
/// the latter. Throws Error(data) if there is none. The chief.
std::string kept_normalization(const std::string& run_dir, const std::string& input, NormalizeBy by,
                               const KeptFiles* kept);
std::string normalization_path(const std::string& run_dir, const std::string& input, NormalizeBy by);

}  // namespace lockstep
