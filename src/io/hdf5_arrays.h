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
#include "io/followed_files.h"

namespace lockstep {

struct Hdf5Array {
  std::string path;  ///< "layers/dense/vars/0"
  DType dtype = DType::f32;
  std::vector<std::int64_t> extents;
  std::vector<std::byte> bytes;  ///< in the byte order of this machine
};

/// Reads the data sets of numbers, sorted by path with numbers in their order (dense_2 before dense_10). Soft
/// and external links are followed, as far as `followed` permits, which then knows the files; other data sets
/// are left out. At most `most_bytes` of values are read; arrays beyond that are checked alone, and have no
/// bytes. Throws Error(data) for a damaged file, for values that are not there (never written, in a file that
/// is missing), for links that lead nowhere, and for more than an InputBudget allows.
std::vector<Hdf5Array> read_hdf5_arrays(const std::string& path, FollowedFiles& followed,
                                        std::uint64_t most_bytes = ~std::uint64_t{0});

/// Writes the arrays, with groups as their paths say, into an empty file that is open for reading and
/// writing. `path` is for messages. Throws Error(output).
void write_hdf5_arrays(int descriptor, const std::string& path, std::span<const Hdf5Array> arrays);

/// The order of paths: digits are compared as numbers.
bool in_natural_order(const std::string& a, const std::string& b);

}  // namespace lockstep
