// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// bad_records.csv of a run directory: the records that data.bad_records: skip leaves out, as found when the
// run began, a line each (bad_records.h). There is none without skip. Every later job and command leaves the
// same ones out of the training set. On-disk names: do not change.
#pragma once

#include <string>

#include "data/dataset.h"

namespace lockstep {

/// Writes the list of both sets; `eval` may be null. The chief.
void keep_bad_records(const std::string& run_dir, const Dataset& train, const Dataset* eval);
/// The text of the file. Throws Error(data) if there is none. The chief.
std::string kept_bad_records(const std::string& run_dir);
std::string bad_records_path(const std::string& run_dir);

}  // namespace lockstep
