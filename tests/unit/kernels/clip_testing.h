// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Shared parts of the tests of norms and clipping, on CPU and GPU: variables of awkward sizes cut into
// blocks, and sparse table rows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/clip.h"
#include "unit/kernels/kernel_testing.h"

namespace lockstep {

/// Sizes around those of columns and blocks, one with more blocks than wide columns, and an empty one.
inline const std::vector<std::int64_t> kClipCounts{
    1, 31, 32, 33, 0, 2047, 2048, 2049, 5000, kClipWideColumns* kClipBlock + 3 * kClipBlock + 77, 7};

struct ClipCase {
  std::vector<ClipBlock> blocks;
  std::vector<ClipVariable> variables;
  std::vector<std::int64_t> offsets, counts;
  std::int64_t elements = 0;  ///< including gaps

  /// Variables begin at multiples of 16 elements, as in a VariableStore.
  explicit ClipCase(const std::vector<std::int64_t>& sizes, double limit = 1) : counts(sizes) {
    for (std::size_t v = 0; v < sizes.size(); ++v) {
      offsets.push_back(elements);
      variables.push_back({static_cast<std::int64_t>(blocks.size()), 0, limit});
      for (std::int64_t first = 0; first < sizes[v]; first += kClipBlock)
        blocks.push_back({elements + first, static_cast<std::int32_t>(std::min(kClipBlock, sizes[v] - first)),
                          static_cast<std::int32_t>(v)});
      variables.back().num_blocks = static_cast<std::int64_t>(blocks.size()) - variables.back().first_block;
      elements += (sizes[v] + 15) / 16 * 16;
    }
  }
  std::int64_t num_blocks() const { return static_cast<std::int64_t>(blocks.size()); }
  std::int64_t num_variables() const { return static_cast<std::int64_t>(variables.size()); }
};

struct ClipNumbers {
  std::vector<double> sums, squares, factors;
  ClipTotals totals;
};

/// Some rows of a table, ascending, and the dense table with zeros in the other rows.
struct SomeRows {
  std::vector<std::int32_t> rows;
  Values values, table;

  SomeRows(std::int64_t table_rows, std::int64_t width, double share, std::uint32_t stream)
      : table(static_cast<std::size_t>(table_rows * width), 0.0) {
    const Values chances = random_values(table_rows, stream, 0.0, 1.0);
    for (std::int64_t row = 0; row < table_rows; ++row)
      if (chances[static_cast<std::size_t>(row)] < share) rows.push_back(static_cast<std::int32_t>(row));
    values = random_values(static_cast<std::int64_t>(rows.size()) * width, stream + 1);
    for (std::size_t k = 0; k < rows.size(); ++k)
      std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(k) * width, width,
                  table.begin() + static_cast<std::ptrdiff_t>(rows[k]) * width);
  }
};

struct TableShape {
  std::int64_t rows, width;
  double share;
};
/// Many rows per block, many blocks per row, rows that begin inside blocks; few of the rows and all of them.
inline const std::vector<TableShape> kTableShapes{{5000, 1, 0.1},   {900, 3, 0.5},  {400, 5, 1.0},
                                                  {3000, 36, 0.02}, {60, 700, 0.4}, {9, 2048, 0.5},
                                                  {40, 2050, 0.3},  {6, 9000, 0.6}, {700, 33, 0.0}};

}  // namespace lockstep
