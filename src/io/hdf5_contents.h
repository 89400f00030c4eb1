// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What is in an HDF5 file: the names, shapes and kinds of its datasets. For commands that look at a file
// before anybody has said what to read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

struct Hdf5Entry {
  std::string name;  ///< "train/image"
  std::vector<std::int64_t> extents;
  bool is_number = false, is_whole = false;
  bool is_text = false, is_boolean = false, is_table = false;
  /// The values of an axis of other datasets, or an axis of netCDF without values.
  bool is_scale = false;
  /// "double", "char" and so on, if MATLAB wrote it; its axes are then in reverse order.
  std::string matlab_class = {};
};

/// The entries of a file in the order of their names, at most `most` of them. Throws Error(data).
std::vector<Hdf5Entry> hdf5_contents(const std::string& path, std::size_t most = 1000);

}  // namespace lockstep
