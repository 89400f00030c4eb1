// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Norms and clipping of gradients (docs/optimizers.md, "Clipping"). Plain types only.
//
// A gradient is cut into blocks of kClipBlock elements, anew at each variable. Squares are added in double,
// in an order that the shapes alone fix: element i of a block goes to column i % kClipColumns, and columns
// are added along a tree; block b of a variable goes to column b % kClipWideColumns, and so do the variables.
// A float32's square is exact in double and cannot overflow there. What is zero adds an exact zero: leaving
// it out changes no bit, so a table of which some rows are given has the norm of the whole one.
#pragma once

#include <cstdint>

#include "core/sparse_rows.h"
#include "kernels/lane.h"

namespace lockstep {

inline constexpr std::int64_t kClipBlock = 2048;
inline constexpr int kClipColumns = 32, kClipWideColumns = 256;

/// `count` elements of the flat gradient from `first` on, all of one variable.
struct ClipBlock {
  std::int64_t first = 0;
  std::int32_t count = 0, variable = 0;
};

/// A variable's blocks, one behind the other. All but the last one have kClipBlock elements.
struct ClipVariable {
  std::int64_t first_block = 0, num_blocks = 0;
  double limit = 0;  ///< of its own norm
};

/// Which norm is limited: none (norms are looked at), that of everything (to `limit`), or each variable's (to
/// ClipVariable::limit).
struct ClipNorms {
  enum class Which { none, all, each };
  Which which = Which::none;
  double limit = 0;
};

struct ClipTotals {
  double norm = 0;     ///< of everything, before clipping
  double clipped = 0;  ///< share of the variables whose factor is not 1
};

/// What becomes of a number g of variable v: float32(factors[v] g), rounded once, g itself where the factor
/// is 1, and NaN where it is NaN. Without factors (null) it is brought into [low, high]; NaN stays.
struct Clipping {
  const double* factors = nullptr;
  float low = 0, high = 0;
};

/// Tables, sums and factors are in the device's memory.
class ClipKernels {
 public:
  virtual ~ClipKernels();

  /// sums[b] = sum of squares of block b.
  virtual void square_blocks(const Lane&, std::int64_t num_blocks, const ClipBlock* blocks, const float* g,
                             double* sums) const = 0;
  /// The same for a table with rows of `width` numbers, sums[b] being that of the table's block b: of the
  /// blocks whose first given row is one of rows[first] to rows[last - 1] (as far as there are so many).
  /// Others are left alone.
  virtual void square_rows(const Lane&, const SparseRows& gradient, std::int64_t first, std::int64_t last,
                           std::int64_t width, double* sums) const = 0;
  /// squares[v] = sum over the variable's blocks; the norm of all of them; factors[v] = min(1, limit / norm),
  /// exactly 1 where the norm is within the limit, NaN where it is not finite. With Which::none factors stay
  /// as they are. `totals` may be pinned memory that the host reads.
  virtual void factors(const Lane&, std::int64_t num_variables, const ClipVariable* variables,
                       const double* sums, ClipNorms norms, double* squares, double* factors,
                       ClipTotals* totals) const = 0;
  virtual void clip_blocks(const Lane&, std::int64_t num_blocks, const ClipBlock* blocks, Clipping clipping,
                           float* g) const = 0;
  /// The values of rows[first] to rows[last - 1] (as far as there are so many) of variable v.
  virtual void clip_rows(const Lane&, const SparseRows& gradient, std::int64_t first, std::int64_t last,
                         std::int64_t width, std::int32_t v, Clipping clipping) const = 0;
};

}  // namespace lockstep
