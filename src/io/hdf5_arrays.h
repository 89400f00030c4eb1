// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// All arrays of numbers of an HDF5 file, by their paths, and a file of such arrays: for files of other
// programs. One process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/dtype.h"

namespace lockstep {

struct Hdf5Array {
  std::string path;  ///< "layers/dense/vars/0"
  DType dtype = DType::f32;
  std::vector<std::int64_t> extents;
  std::vector<std::byte> bytes;  ///< in the byte order of this machine
};

/// Reads the data sets of numbers, sorted by path with numbers in their order (dense_2 before dense_10).
/// Links to other files, and other data sets, are left out. Throws Error(data) for a damaged file, and for
/// arrays larger than the file could hold.
std::vector<Hdf5Array> read_hdf5_arrays(const std::string& path);

/// Writes the arrays, with groups as their paths say, into an empty file that is open for reading and
/// writing. `path` is for messages. Throws Error(output).
void write_hdf5_arrays(int descriptor, const std::string& path, std::span<const Hdf5Array> arrays);

/// The order of paths: digits are compared as numbers.
bool in_natural_order(const std::string& a, const std::string& b);

}  // namespace lockstep
