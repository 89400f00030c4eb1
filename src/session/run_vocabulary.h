// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What a run directory keeps of a data set of text: vocabulary.txt (a line per id: word <tab> count) and
// classes.txt (a line per class). A run is only ever continued, evaluated and used with the same ones: a
// token's id is the row of an embedding.
#pragma once

#include <string>

#include "data/dataset.h"

namespace lockstep {

/// Writes the files. Nothing for data that is no text. The chief.
void keep_vocabulary(const std::string& run_dir, const Dataset& data);
/// Throws Error(data) if the directory has other words or classes than the data; names the first that
/// differs. The chief.
void check_vocabulary(const std::string& run_dir, const Dataset& data);
std::string vocabulary_path(const std::string& run_dir);

}  // namespace lockstep
