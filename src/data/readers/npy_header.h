// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal to the npy reader: the header of NumPy's format, versions 1.0 to 3.0
// (numpy.org/doc/stable/reference/generated/numpy.lib.format.html): 93 "NUMPY", version, length, and a Python
// dictionary of literals.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/readers/stored_numbers.h"
#include "io/byte_source.h"

namespace lockstep {

struct NpyHeader {
  StoredType type;                    ///< bool is u8
  std::vector<std::int64_t> extents;  ///< at least one; the first counts rows
  std::int64_t data_offset = 0;       ///< of the first value

  std::int64_t rows() const { return extents[0]; }
  std::int64_t values_per_row() const;
  std::int64_t row_bytes() const {
    return values_per_row() * static_cast<std::int64_t>(size_in_bytes(type.type));
  }
};

/// Throws Error(data) that names `where` and the byte of what it does not understand. The sizes are those
/// that the header claims: products fit into 63 bits.
NpyHeader read_npy_header(ByteSource& source);

/// The dictionary alone, whose first byte is byte `offset` of `where`.
NpyHeader parse_npy_header(std::string_view text, std::int64_t offset, const std::string& where);

}  // namespace lockstep
