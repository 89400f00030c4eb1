// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The header of NumPy's format, versions 1.0 to 3.0
// (numpy.org/doc/stable/reference/generated/numpy.lib.format.html): 93 "NUMPY", version, length, and a Python
// dictionary of literals.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/stored_numbers.h"
#include "io/byte_source.h"

namespace lockstep {

struct NpyHeader {
  /// Whole numbers of 32 and 64 bits without a sign become int64; texts are zero-filled.
  enum class Values { numbers, uint32, uint64, bytes, characters };

  StoredType type;  ///< of numbers in memory: bool is u8
  Values values = Values::numbers;
  std::int64_t value_bytes = 0;       ///< of one in the file
  std::string descr;                  ///< NumPy's name of the type: "<f4"
  std::vector<std::int64_t> extents;  ///< at least one; the first counts rows
  bool fortran_order = false;         ///< the first axis is the fastest
  std::int64_t data_offset = 0;       ///< of the first value

  std::int64_t rows() const { return extents[0]; }
  std::int64_t values_per_row() const;
  std::int64_t row_bytes() const { return values_per_row() * value_bytes; }
  bool are_texts() const { return values == Values::bytes || values == Values::characters; }
  /// "(5, 100)", as NumPy writes it.
  std::string shape_text() const;
};

/// Throws Error(data) that names `where` and the byte of what it does not understand. The sizes are those
/// that the header claims: products fit into 63 bits.
NpyHeader read_npy_header(ByteSource& source);

/// The dictionary alone, whose first byte is byte `offset` of `where`.
NpyHeader parse_npy_header(std::string_view text, std::int64_t offset, const std::string& where);

}  // namespace lockstep
