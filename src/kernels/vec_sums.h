// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Sums over the rows of a matrix and along a row, for files compiled per instruction-set level (isa.h). The
// shape fixes their order, so the bits are the same at every level.
#pragma once

#include "kernels/vec.h"

namespace lockstep {
namespace {

/// Number of panel rows that are summed in float32 before the sum is added in double.
constexpr std::int64_t kBlockRows = 64;

/// Sums value(offset of the piece) over a panel's rows, per column, in double.
template <typename V, typename Value>
inline void sum_panel(const Panel& panel, double* totals, const Value& value) {
  using L = Lanes<V>;
  for (int i = 0; i < panel.width; ++i) totals[i] = 0.0;
  for (std::int64_t first = 0; first < panel.rows; first += kBlockRows) {
    const std::int64_t last = first + kBlockRows < panel.rows ? first + kBlockRows : panel.rows;
    V sum[kMaxPieces<V>] = {};
    for (std::int64_t r = first; r < last; ++r) {
      const std::int64_t row = panel.offset + r * panel.stride;
      for_each_piece<V>(panel, [&](int k) { sum[k] += value(row + k * L::kWidth); });
    }
    float columns[kPanelColumns];
    for_each_piece<V>(panel, [&](int k) { L::store(columns + k * L::kWidth, sum[k]); });
    for (int i = 0; i < panel.width; ++i) totals[i] += static_cast<double>(columns[i]);
  }
}

/// result[c] = factor * sum over rows, rounded to float32, then to the result's type. value is as in
/// sum_panel, generic over the type of its second argument.
template <typename T, typename Value>
inline void sum_rows(std::int64_t rows, std::int64_t channels, double factor, T* result, const Value& value) {
  double totals[kPanelColumns], few[kPanelColumns] = {};
  for_each_panel(rows, channels, [&]<typename V>(const Panel& panel, V tag) {
    sum_panel<V>(panel, totals, [&](std::int64_t at) { return value(at, tag); });
    if (channels >= kPanelColumns) {
      for (int i = 0; i < panel.width; ++i)
        result[panel.channel + i] = from_float<T>(static_cast<float>(totals[i] * factor));
      return;
    }
    std::int64_t channel = panel.channel;
    for (int i = 0; i < panel.width; ++i) {
      few[channel] += totals[i];
      if (++channel == channels) channel = 0;
    }
  });
  if (channels < kPanelColumns)
    for (std::int64_t c = 0; c < channels; ++c)
      result[c] = from_float<T>(static_cast<float>(few[c] * factor));
}

/// kSums sums along `count` elements. add(at, sums) adds the terms of the elements from `at` on to sums[0]
/// ... sums[kSums - 1]; it is generic over their type (a register or one float). Element j of a block is
/// added to column j % 16 in float32; a block's 16 columns are added in double along a tree.
template <int kSums, typename Add>
inline void sum_along(std::int64_t count, double* totals, const Add& add) {
  constexpr std::int64_t kColumns = 16, kBlock = 64 * kColumns;
  constexpr int kPieces = static_cast<int>(kColumns) / kLanes;
  for (int n = 0; n < kSums; ++n) totals[n] = 0.0;
  for (std::int64_t first = 0; first < count; first += kBlock) {
    const std::int64_t last = first + kBlock < count ? first + kBlock : count;
    Vec sums[kPieces][kSums] = {};
    std::int64_t j = first;
    for (; j + kColumns <= last; j += kColumns) {
#pragma GCC unroll 4
      for (int k = 0; k < kPieces; ++k) add(j + k * kLanes, sums[k]);
    }
    float columns[kSums][kColumns];
    for (int k = 0; k < kPieces; ++k)
      for (int n = 0; n < kSums; ++n) Lanes<Vec>::store(columns[n] + k * kLanes, sums[k][n]);
    for (std::int64_t i = 0; j < last; ++i, ++j) {
      float one[kSums];
      for (int n = 0; n < kSums; ++n) one[n] = columns[n][i];
      add(j, one);
      for (int n = 0; n < kSums; ++n) columns[n][i] = one[n];
    }
    for (int n = 0; n < kSums; ++n) {
      double tree[kColumns];
      for (int i = 0; i < kColumns; ++i) tree[i] = static_cast<double>(columns[n][i]);
      for (int half = kColumns / 2; half > 0; half /= 2)
        for (int i = 0; i < half; ++i) tree[i] += tree[i + half];
      totals[n] += tree[0];
    }
  }
}

/// Loads a register or one float, by the type of the second argument.
template <typename V>
inline V load_as(const float* from, const V*) {
  return Lanes<V>::load(from);
}

}  // namespace
}  // namespace lockstep
