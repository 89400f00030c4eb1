// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// class_counts.txt of a run directory and its checkpoints: a line per class with its labels in the training
// set, as counted when the run began, for losses with class_weights: balanced; of the head NAME:
// class_counts-NAME.txt. On-disk names: do not change.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "io/checkpoint.h"
#include "model/heads.h"

namespace lockstep {

/// Adds the files of heads that have counts.
void add_class_counts(const Heads& heads, KeptFiles& kept);
/// The counts of a head ("": the only one), from `kept` or else from the run directory; null: from the
/// latter. Nothing if there are none. Throws Error(data) for a file that is damaged. The chief.
std::optional<std::vector<std::int64_t>> kept_class_counts(const std::string& run_dir,
                                                           const std::string& head, const KeptFiles* kept);
std::string class_counts_path(const std::string& run_dir, const std::string& head);

}  // namespace lockstep
