// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The first values of a dataset of an HDF5 file, and the columns of a table: for commands that look at a file
// before anybody has said what to read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

/// At most `most` values. Throws Error(data).
std::vector<double> first_hdf5_numbers(const std::string& path, const std::string& name, std::int64_t most);
std::vector<std::string> first_hdf5_texts(const std::string& path, const std::string& name,
                                          std::int64_t most);
/// The names of a table's columns; empty if it is none.
std::vector<std::string> hdf5_column_names(const std::string& path, const std::string& name);

}  // namespace lockstep
