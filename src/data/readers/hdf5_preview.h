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

struct Hdf5ColumnLook {
  std::string name;
  bool has_numbers = false;  ///< a number, or an array of them
};
/// A table's columns; none if it is no table.
std::vector<Hdf5ColumnLook> hdf5_table_columns(const std::string& path, const std::string& name);

}  // namespace lockstep
