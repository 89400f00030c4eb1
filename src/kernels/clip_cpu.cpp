// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Norms and clipping on the CPU, per instruction-set level (isa.h).
#include "kernels/clip.h"

#include "kernels/isa.h"
#include "kernels/vec.h"

namespace lockstep::LOCKSTEP_ISA {
namespace {

// A register of doubles, which takes as many floats.
constexpr int kDoubles = kLanes / 2, kPieces = kClipColumns / kDoubles;
using Doubles = double __attribute__((vector_size(kDoubles * sizeof(double))));
using UnalignedDoubles =
    double __attribute__((vector_size(kDoubles * sizeof(double)), aligned(8), may_alias));
using UnalignedFloats = float __attribute__((vector_size(kDoubles * sizeof(float)), aligned(4), may_alias));

inline double square(float value) { return static_cast<double>(value) * static_cast<double>(value); }

/// columns[(column + i) % kClipColumns] += g[i]^2.
inline void add_squares(std::int64_t column, std::int64_t count, const float* g, double* columns) {
  std::int64_t i = 0;
  for (; i < count && (column + i) % kClipColumns != 0; ++i)
    columns[(column + i) % kClipColumns] += square(g[i]);
  if (i + kClipColumns <= count) {
    Doubles sums[kPieces];
#pragma GCC unroll 16
    for (int k = 0; k < kPieces; ++k)
      sums[k] = *reinterpret_cast<const UnalignedDoubles*>(columns + k * kDoubles);
    for (; i + kClipColumns <= count; i += kClipColumns) {
#pragma GCC unroll 16
      for (int k = 0; k < kPieces; ++k) {
        const UnalignedFloats floats = *reinterpret_cast<const UnalignedFloats*>(g + i + k * kDoubles);
        const Doubles value = __builtin_convertvector(floats, Doubles);
        sums[k] += value * value;
      }
    }
#pragma GCC unroll 16
    for (int k = 0; k < kPieces; ++k) *reinterpret_cast<UnalignedDoubles*>(columns + k * kDoubles) = sums[k];
  }
  for (; i < count; ++i) columns[(column + i) % kClipColumns] += square(g[i]);
}

/// Sums along a tree; overwrites `columns`.
template <int kColumns>
inline double tree_sum(double* columns) {
  for (int half = kColumns / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) columns[i] += columns[i + half];
  return columns[0];
}

inline double wide_sum(std::int64_t count, const double* values) {
  double columns[kClipWideColumns] = {};
  for (std::int64_t first = 0; first < count; first += kClipWideColumns) {
    const std::int64_t width = count - first < kClipWideColumns ? count - first : kClipWideColumns;
    for (std::int64_t i = 0; i < width; ++i) columns[i] += values[first + i];
  }
  return tree_sum<kClipWideColumns>(columns);
}

inline double factor_of(double norm, double limit) {
  if (norm <= limit) return 1.0;
  return norm - norm == 0.0 ? limit / norm : __builtin_nan("");
}

inline void clip(std::int64_t count, Clipping clipping, std::int64_t v, float* __restrict__ g) {
  if (clipping.factors == nullptr) {
    const float low = clipping.low, high = clipping.high;
    for (std::int64_t i = 0; i < count; ++i) {
      const float below = g[i] > high ? high : g[i];
      g[i] = below < low ? low : below;
    }
    return;
  }
  const double factor = clipping.factors[v];
  if (factor == 1.0) return;
  if (factor != factor)
    for (std::int64_t i = 0; i < count; ++i) g[i] = __builtin_nanf("");
  else
    for (std::int64_t i = 0; i < count; ++i) g[i] = static_cast<float>(factor * static_cast<double>(g[i]));
}

class Clip final : public ClipKernels {
 public:
  void square_blocks(const Lane&, std::int64_t num_blocks, const ClipBlock* blocks, const float* g,
                     double* sums) const override {
    for (std::int64_t b = 0; b < num_blocks; ++b) {
      double columns[kClipColumns] = {};
      add_squares(0, blocks[b].count, g + blocks[b].first, columns);
      sums[b] = tree_sum<kClipColumns>(columns);
    }
  }

  void square_rows(const Lane&, const SparseRows& gradient, std::int64_t first, std::int64_t last,
                   std::int64_t width, double* sums) const override {
    const std::int64_t count = *gradient.count, end = last < count ? last : count;
    const auto begin_of = [&](std::int64_t k) { return gradient.rows[k] * width; };
    // The first block without elements of the previous row.
    std::int64_t block = first > 0 && first <= count ? (begin_of(first - 1) + width - 1) / kClipBlock + 1 : 0;
    for (std::int64_t k = first; k < end;) {
      if (const std::int64_t own = begin_of(k) / kClipBlock; own > block) block = own;
      const std::int64_t from = block * kClipBlock, to = from + kClipBlock;
      if (begin_of(k) + width <= from) {  // the row lies within blocks already handled
        ++k;
        continue;
      }
      double columns[kClipColumns] = {};
      std::int64_t row = k;
      for (; row < count && begin_of(row) < to; ++row) {
        const std::int64_t begin = begin_of(row) > from ? begin_of(row) : from;
        const std::int64_t stop = begin_of(row) + width < to ? begin_of(row) + width : to;
        add_squares(begin, stop - begin, gradient.values + row * width + (begin - begin_of(row)), columns);
      }
      sums[block] = tree_sum<kClipColumns>(columns);
      ++block;
      k = row - 1;  // the row may continue in the next block
    }
  }

  void factors(const Lane&, std::int64_t num_variables, const ClipVariable* variables, const double* sums,
               ClipNorms norms, double* squares, double* factors, ClipTotals* totals) const override {
    for (std::int64_t v = 0; v < num_variables; ++v)
      squares[v] = wide_sum(variables[v].num_blocks, sums + variables[v].first_block);
    totals->norm = __builtin_sqrt(wide_sum(num_variables, squares));
    totals->clipped = 0;
    if (norms.which == ClipNorms::Which::none) return;
    std::int64_t clipped = 0;
    for (std::int64_t v = 0; v < num_variables; ++v) {
      factors[v] = norms.which == ClipNorms::Which::all
                       ? factor_of(totals->norm, norms.limit)
                       : factor_of(__builtin_sqrt(squares[v]), variables[v].limit);
      clipped += factors[v] == 1.0 ? 0 : 1;
    }
    totals->clipped = static_cast<double>(clipped) / static_cast<double>(num_variables);
  }

  void clip_blocks(const Lane&, std::int64_t num_blocks, const ClipBlock* blocks, Clipping clipping,
                   float* g) const override {
    for (std::int64_t b = 0; b < num_blocks; ++b)
      clip(blocks[b].count, clipping, blocks[b].variable, g + blocks[b].first);
  }

  void clip_rows(const Lane&, const SparseRows& gradient, std::int64_t first, std::int64_t last,
                 std::int64_t width, std::int32_t v, Clipping clipping) const override {
    const std::int64_t end = last < *gradient.count ? last : *gradient.count;
    if (first < end) clip((end - first) * width, clipping, v, gradient.values + first * width);
  }
};

}  // namespace

const ClipKernels& clip_kernels() {
  static const Clip kernels;
  return kernels;
}

}  // namespace lockstep::LOCKSTEP_ISA
