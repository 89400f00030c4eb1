// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal to the reader hdf5: the option groups, with which each sample is a group of the file, such as
// /sample_0001 with the datasets x and y. Features and labels are datasets or attributes in each group,
// without an axis of samples.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/params.h"
#include "data/dataset_parts.h"

namespace lockstep {

/// Opens the groups of all files, in the order of their names, where numbers count as numbers: sample_9 comes
/// before sample_10. `labels_may_miss`: they are read only if the first group has them. The first group says
/// what a sample is; the others are compared when they are read. Throws Error(config) for options that are
/// about datasets of many samples.
DatasetParts open_hdf5_groups(const Params& params, const std::vector<std::string>& paths,
                              const std::optional<RowRange>& rows, bool labels, bool labels_may_miss);

/// Opens a file as above, and reads its first and its last group.
void try_hdf5_groups(const Params& params, const std::string& path);

}  // namespace lockstep
