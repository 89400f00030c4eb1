// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Finds the bucket of a float32 (distribution.h) with one look into a table. The bits of a positive float32
// order like an integer. Their upper 13 bits, the exponent and 4 bits of the fraction, name a cell that is at
// most 1/16 wide relative to its numbers. Edges are a factor of 1.1 apart, so a cell has one edge or none:
// the table gives the number of edges up to its begin, and one comparison the rest. For files that are
// compiled per instruction-set level, and *.cu files.
#pragma once

#include <cstdint>

#include "kernels/distribution.h"

namespace lockstep {
namespace {  // a copy per file, see isa.h

struct BucketTable {
  static constexpr int kShift = 19, kCells = 1 << (31 - kShift);
  std::uint32_t edges[kDistributionEdges + 1] =
      {};                            ///< bits of the least float32 >= the edge; a last one above all
  std::uint16_t below[kCells] = {};  ///< edges <= the begin of the cell
};

/// No edge is a float32 (distribution_test.cpp), so a number x > 0 is above an edge if and only if it is at
/// least the float32 above the edge: both signs use the same comparison.
constexpr BucketTable bucket_table() {
  BucketTable table;
  double edge = 1e-12;
  for (int i = 0; i < kDistributionEdges; ++i) {
    auto bits = __builtin_bit_cast(std::uint32_t, static_cast<float>(edge));
    if (static_cast<double>(__builtin_bit_cast(float, bits)) < edge) ++bits;
    table.edges[i] = bits;
    edge *= 1.1;
  }
  table.edges[kDistributionEdges] = 0xFFFFFFFFU;
  int count = 0;
  for (int cell = 0; cell < BucketTable::kCells; ++cell) {
    while (table.edges[count] <= static_cast<std::uint32_t>(cell) << BucketTable::kShift) ++count;
    table.below[cell] = static_cast<std::uint16_t>(count);
  }
  return table;
}

}  // namespace
}  // namespace lockstep
