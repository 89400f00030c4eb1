// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The values of one dataset of HDF5 files that the reader hdf5 reads: what people call their samples.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace lockstep {

/// The values of the dataset `name` of the files, one after the other: texts or whole numbers, one for each
/// sample. Nothing if the first file has no such dataset, or, unless it is `wanted`, one of another form.
/// Throws Error(data).
std::optional<std::vector<std::string>> hdf5_ids(const std::vector<std::string>& paths,
                                                 const std::string& name, bool wanted);

}  // namespace lockstep
