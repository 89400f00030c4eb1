// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Norms and clipping of gradients (docs/optimizers.md, "Clipping"). This header uses plain types only
// (isa.h).
//
// Each variable's gradient is cut into blocks of kClipBlock elements. Squares are summed in double, in an
// order that the shapes alone fix. Element i of a block is added to column i % kClipColumns, and the columns
// are added along a tree. Block b of a variable is added to column b % kClipWideColumns; the sums of the
// variables are added the same way. The square of a float32 is exact in double and cannot overflow there. A
// zero adds an exact zero, so skipping it changes no bit: a sparse table gradient has the same norm as the
// dense one.
#pragma once

#include <cstdint>

#include "core/sparse_rows.h"
#include "kernels/lane.h"

namespace lockstep {

inline constexpr std::int64_t kClipBlock = 2048;
inline constexpr int kClipColumns = 32, kClipWideColumns = 256;

/// `count` elements of the flat gradient, starting at `first`, all of one variable.
struct ClipBlock {
  std::int64_t first = 0;
  std::int32_t count = 0, variable = 0;
};

/// A variable's blocks, stored consecutively. All but the last have kClipBlock elements.
struct ClipVariable {
  std::int64_t first_block = 0, num_blocks = 0;
  double limit = 0;  ///< of this variable's own norm
};

/// Which norm is limited: none (norms are only measured), the global norm (to `limit`), or each variable's
/// norm (to ClipVariable::limit).
struct ClipNorms {
  enum class Which { none, all, each };
  Which which = Which::none;
  double limit = 0;
};

struct ClipTotals {
  double norm = 0;     ///< global norm before clipping
  double clipped = 0;  ///< fraction of variables whose factor is not 1
};

/// How a gradient element g of variable v is clipped. With factors: float32(factors[v] g), rounded once; g
/// itself if the factor is 1; NaN if the factor is NaN. Without factors (null): g clamped to [low, high]; NaN
/// stays NaN.
struct Clipping {
  const double* factors = nullptr;
  float low = 0, high = 0;
};

/// Tables, sums and factors are in device memory.
class ClipKernels {
 public:
  virtual ~ClipKernels();

  /// sums[b] = sum of squares of block b.
  virtual void square_blocks(const Lane&, std::int64_t num_blocks, const ClipBlock* blocks, const float* g,
                             double* sums) const = 0;
  /// The same for a table with rows of `width` numbers, where sums[b] is the sum of the table's block b. It
  /// writes the blocks whose first given row is one of rows[first] to rows[last - 1], or as many of these as
  /// exist, and leaves other blocks unchanged.
  virtual void square_rows(const Lane&, const SparseRows& gradient, std::int64_t first, std::int64_t last,
                           std::int64_t width, double* sums) const = 0;
  /// squares[v] = sum over the variable's blocks. totals: the global norm and the fraction of clipped
  /// variables. factors[v] = min(1, limit / norm), exactly 1 if the norm is within the limit, NaN if it is
  /// not finite. With Which::none, factors are unchanged. `totals` may be pinned memory that the host reads.
  virtual void factors(const Lane&, std::int64_t num_variables, const ClipVariable* variables,
                       const double* sums, ClipNorms norms, double* squares, double* factors,
                       ClipTotals* totals) const = 0;
  virtual void clip_blocks(const Lane&, std::int64_t num_blocks, const ClipBlock* blocks, Clipping clipping,
                           float* g) const = 0;
  /// Clips the values of rows[first] to rows[last - 1], or as many of these as exist, of variable v.
  virtual void clip_rows(const Lane&, const SparseRows& gradient, std::int64_t first, std::int64_t last,
                         std::int64_t width, std::int32_t v, Clipping clipping) const = 0;
};

}  // namespace lockstep
