// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Strided copies on the CPU, per instruction-set level (isa.h): copies runs if both sides are contiguous, and
// transposes tiles if one side's runs are the other side's columns.
#include "kernels/layout.h"

#include "kernels/isa.h"

namespace lockstep::LOCKSTEP_ISA {
namespace {

/// Calls body(offset in from, offset in to) for every index of the axes except `inner` and `other` (-1:
/// none).
template <typename Body>
inline void for_each_index(const StridedCopy& copy, std::int64_t samples, int inner, int other,
                           const Body& body) {
  std::int64_t index[StridedCopy::kMaxRank] = {}, from = 0, to = 0;
  const auto extent = [&](int axis) { return axis == 0 ? samples : copy.extents[axis]; };
  for (;;) {
    body(from, to);
    int axis = copy.rank - 1;
    for (; axis >= 0; --axis) {
      if (axis == inner || axis == other) continue;
      from += copy.from_strides[axis];
      to += copy.to_strides[axis];
      if (++index[axis] < extent(axis)) break;
      from -= index[axis] * copy.from_strides[axis];
      to -= index[axis] * copy.to_strides[axis];
      index[axis] = 0;
    }
    if (axis < 0) return;
  }
}

template <typename Word>
inline void copy_run(std::int64_t count, const Word* from, Word* to) {
  if (count >= 64) {
    __builtin_memcpy(to, from, static_cast<std::size_t>(count) * sizeof(Word));
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) to[i] = from[i];
}

/// rows x columns: to[r * to_row + c] = from[r + c * from_column], tile by tile. A run of `from` is a column
/// of `to`.
template <typename Word>
inline void transpose(std::int64_t rows, std::int64_t columns, const Word* from, std::int64_t from_column,
                      Word* to, std::int64_t to_row) {
  constexpr std::int64_t kTile = 16;  // 16 x 64 bytes of each side stay in the first-level cache
  for (std::int64_t r0 = 0; r0 < rows; r0 += kTile)
    for (std::int64_t c0 = 0; c0 < columns; c0 += kTile) {
      const std::int64_t r1 = r0 + kTile < rows ? r0 + kTile : rows;
      const std::int64_t c1 = c0 + kTile < columns ? c0 + kTile : columns;
      for (std::int64_t r = r0; r < r1; ++r)
        for (std::int64_t c = c0; c < c1; ++c) to[r * to_row + c] = from[r + c * from_column];
    }
}

template <typename Word>
inline void strided_copy(const StridedCopy& copy, std::int64_t samples, const Word* from, Word* to) {
  for (int axis = 0; axis < copy.rank; ++axis)
    if ((axis == 0 ? samples : copy.extents[axis]) == 0) return;
  const int last = copy.rank - 1;
  const std::int64_t count = last == 0 ? samples : copy.extents[last];
  const std::int64_t from_stride = copy.from_strides[last], to_stride = copy.to_strides[last];
  if (from_stride == 1 && to_stride == 1) {
    for_each_index(copy, samples, last, -1,
                   [&](std::int64_t f, std::int64_t t) { copy_run(count, from + f, to + t); });
    return;
  }
  for (int axis = 1; axis < last; ++axis) {
    const std::int64_t rows = copy.extents[axis];
    if (to_stride == 1 && copy.from_strides[axis] == 1) {
      for_each_index(copy, samples, last, axis, [&](std::int64_t f, std::int64_t t) {
        transpose(rows, count, from + f, from_stride, to + t, copy.to_strides[axis]);
      });
      return;
    }
  }
  for_each_index(copy, samples, last, -1, [&](std::int64_t f, std::int64_t t) {
    for (std::int64_t i = 0; i < count; ++i) to[t + i * to_stride] = from[f + i * from_stride];
  });
}

class Layout final : public LayoutKernels {
 public:
  void copy(const Lane&, const StridedCopy& copy, std::int64_t samples, ConstData from,
            Data to) const override {
    with_words(from, to, [&](const auto* f, auto* t) { strided_copy(copy, samples, f, t); });
  }
};

}  // namespace

const LayoutKernels& layout_kernels() {
  static const Layout kernels;
  return kernels;
}

}  // namespace lockstep::LOCKSTEP_ISA
