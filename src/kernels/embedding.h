// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Rows of a table by number: gather, and the gradient of it. An id is a float32 whole number in [0, rows);
// rows < 2^24. The gradient is made in two stages, so that it can be a dense table or stay (rows, values):
// first the positions are grouped by row, then each row adds its positions in ascending order. No atomics, no
// decision by anything but the ids: the same bits twice, on each instruction-set level, and on a GPU. What is
// gathered, and its gradient, lie in memory in any type of core/data.h; ids, table and the table's gradient
// are float32. Plain types only (compiled for several instruction sets).
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/data.h"
#include "kernels/lane.h"

namespace lockstep {

/// Positions grouped by row; memory of the caller's, on the device. Rows ascend, and so do the positions of a
/// row. Positions whose id is the padding or names no row are left out.
struct TouchedRows {
  std::int32_t* order = nullptr;   ///< [positions] positions, row by row
  std::int32_t* rows = nullptr;    ///< [positions] the k-th row that is touched
  std::int32_t* starts = nullptr;  ///< [positions + 1] where in `order` its positions begin; behind the last
                                   ///< row the end
  std::int32_t* count = nullptr;   ///< [1] rows that are touched

  /// Numbers that carve() takes.
  static constexpr std::int64_t words(std::int64_t positions) { return 3 * positions + 2; }
  static TouchedRows carve(std::int32_t* memory, std::int64_t positions) {
    return {memory, memory + positions, memory + 2 * positions, memory + 3 * positions + 1};
  }
  /// With the rows and their count in other memory, which has room for as many rows as the table has, or as
  /// there are positions.
  TouchedRows with(std::int32_t* other_rows, std::int32_t* other_count) const {
    return {order, other_rows, starts, other_count};
  }
};

class EmbeddingKernels {
 public:
  virtual ~EmbeddingKernels();

  /// y[p] = table[ids[p]], units numbers; zeros where the id is `padding` (-1: none). The row of an id that
  /// names no row is NaN. Returns the first such position, or -1; a GPU, which would have to be waited for,
  /// always returns -1.
  virtual std::int64_t gather(const Lane&, std::int64_t positions, std::int64_t rows, std::int64_t units,
                              const float* ids, std::int64_t padding, const float* table, Data y) const = 0;

  /// Bytes of workspace that group_by_row needs.
  virtual std::size_t group_bytes(std::int64_t positions) const = 0;
  /// Groups positions by the row that their id names. positions < 2^31.
  virtual void group_by_row(const Lane&, std::int64_t positions, std::int64_t rows, const float* ids,
                            std::int64_t padding, void* workspace, const TouchedRows& touched) const = 0;
  /// values[k] = sum over the positions p of the k-th touched row, ascending, of dy[p]: float32 within 64
  /// positions, double across. `dense`: into values[rows[k]] instead, of a table whose other rows the caller
  /// has set to zero. No aliasing.
  virtual void accumulate(const Lane&, std::int64_t positions, std::int64_t units, const TouchedRows& touched,
                          ConstData dy, bool dense, float* values) const = 0;

  // Rows of several microshards, the leaves of one node of the shard tree, become those of the node: their
  // numbers as ids, group_by_row() over all places, add_leaves(). Each leaf has leaf_rows places, of which
  // counts[leaf] hold a row, no row twice.

  /// ids[place] = rows[place] where the leaf has one, else -1, which names no row. [leaves][leaf_rows].
  virtual void ids_of_rows(const Lane&, std::int64_t leaves, std::int64_t leaf_rows,
                           const std::int32_t* counts, const std::int32_t* rows, float* ids) const = 0;
  /// values[k] = sum over the leaves that have the k-th touched row, along the shard tree (comm/tree.h); a
  /// leaf without it adds nothing. `leaf_values` [leaves][leaf_rows][units] is used up.
  virtual void add_leaves(const Lane&, std::int64_t leaves, std::int64_t leaf_rows, std::int64_t units,
                          const TouchedRows& touched, float* leaf_values, float* values) const = 0;
};

}  // namespace lockstep
