// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Table rows by index: gather, and its gradient. An id is a float32 whole number in [0, rows); rows < 2^24.
// The gradient is computed in two stages, so that it can be a dense table or remain (rows, values):
// group_by_row() groups the positions by row, then accumulate() adds each row's positions in ascending order.
// There are no atomics and no decisions that depend on anything but the ids, so the bits are the same in
// every run, at every instruction-set level, and on a GPU. The gathered values and their gradient have any
// type of core/data.h; ids, the table and its gradient are float32. This header uses plain types only
// (isa.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/data.h"
#include "kernels/lane.h"

namespace lockstep {

/// Positions grouped by row, in device memory owned by the caller. Rows ascend, and so do the positions of a
/// row. Positions whose id is the padding or names no row are excluded.
struct TouchedRows {
  std::int32_t* order = nullptr;   ///< [positions] positions, row by row
  std::int32_t* rows = nullptr;    ///< [positions] index of the k-th touched row
  std::int32_t* starts = nullptr;  ///< [positions + 1] where each row starts in `order`, then the end
  std::int32_t* count = nullptr;   ///< [1] number of touched rows

  /// Number of integers that carve() uses.
  static constexpr std::int64_t words(std::int64_t positions) { return 3 * positions + 2; }
  static TouchedRows carve(std::int32_t* memory, std::int64_t positions) {
    return {memory, memory + positions, memory + 2 * positions, memory + 3 * positions + 1};
  }
  /// The same with the rows and their count in other memory. It has room for as many rows as the table has,
  /// or as there are positions.
  TouchedRows with(std::int32_t* other_rows, std::int32_t* other_count) const {
    return {order, other_rows, starts, other_count};
  }
};

class EmbeddingKernels {
 public:
  virtual ~EmbeddingKernels();

  /// y[p] = table[ids[p]], `units` numbers; zeros where the id is `padding` (-1: none); NaN where the id
  /// names no row. Returns the first position whose id names no row, or -1. A GPU always returns -1, since
  /// the caller would have to wait for it.
  virtual std::int64_t gather(const Lane&, std::int64_t positions, std::int64_t rows, std::int64_t units,
                              const float* ids, std::int64_t padding, const float* table, Data y) const = 0;

  /// Bytes of workspace that group_by_row() needs.
  virtual std::size_t group_bytes(std::int64_t positions) const = 0;
  /// Groups positions by the row that their id names. positions < 2^31.
  virtual void group_by_row(const Lane&, std::int64_t positions, std::int64_t rows, const float* ids,
                            std::int64_t padding, void* workspace, const TouchedRows& touched) const = 0;
  /// Bytes of workspace that accumulate() needs; 0: it may be null.
  virtual std::size_t sum_bytes(std::int64_t positions, std::int64_t units) const = 0;
  /// values[k] = sum over the positions p of the k-th touched row, ascending, of dy[p]: float32 within 64
  /// positions, double across. `dense`: writes to values[rows[k]] instead, a table whose other rows the
  /// caller has set to zero. No aliasing. The workspace may be that of group_by_row().
  virtual void accumulate(const Lane&, std::int64_t positions, std::int64_t units, const TouchedRows& touched,
                          ConstData dy, bool dense, void* workspace, float* values) const = 0;

  // Merging the rows of several microshards, the leaves of one node of the shard tree, into the node's rows:
  // ids_of_rows(), group_by_row() over all places, then add_leaves(). Each leaf has leaf_rows places; the
  // first counts[leaf] of them hold distinct rows.

  /// ids[place] = rows[place] for occupied places, else -1, which names no row. [leaves][leaf_rows].
  virtual void ids_of_rows(const Lane&, std::int64_t leaves, std::int64_t leaf_rows,
                           const std::int32_t* counts, const std::int32_t* rows, float* ids) const = 0;
  /// values[k] = sum over the leaves that have the k-th touched row, along the shard tree (comm/tree.h). A
  /// leaf without the row adds nothing. `leaf_values` [leaves][leaf_rows][units] is overwritten.
  virtual void add_leaves(const Lane&, std::int64_t leaves, std::int64_t leaf_rows, std::int64_t units,
                          const TouchedRows& touched, float* leaf_values, float* values) const = 0;
};

}  // namespace lockstep
