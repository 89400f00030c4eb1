// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The moments of NormKernels on the CPU and their merge (private to norm_cpu.cpp), per instruction-set level.
// Sums are in float32 over kBlockRows rows of a panel (vec.h), and in double across blocks and panels.
#pragma once

#include "kernels/isa.h"
#include "kernels/norm.h"
#include "kernels/vec.h"

namespace lockstep::LOCKSTEP_ISA {
namespace {

/// Rows of a panel that are summed in float32: 64 x 64 floats, 16 KiB, half of the first-level cache.
constexpr std::int64_t kBlockRows = 64;

/// Mergeable mean and sum of squared deviations of `count` values.
struct Moments {
  double mean[kPanelColumns];
  double m2[kPanelColumns];
};

/// Merges `from` (of `count_b` values) into `into` (of `count_a`), column by column (Chan, Golub and LeVeque
/// 1979, equation 2.1).
inline void merge(std::int64_t count_a, Moments& into, std::int64_t count_b, const Moments& from, int width) {
  const double a = static_cast<double>(count_a), b = static_cast<double>(count_b);
  const double share = b / (a + b), weight = a * share;
  for (int i = 0; i < width; ++i) {
    const double delta = from.mean[i] - into.mean[i];
    into.mean[i] += delta * share;
    into.m2[i] += from.m2[i] + delta * delta * weight;
  }
}

/// A panel's per-channel values in registers.
template <typename V>
struct Columns {
  V at[kMaxPieces<V>] = {};
  void load(const Panel& panel, const float* columns) {
    for (int k = 0; k < pieces<V>(panel); ++k) at[k] = Lanes<V>::load(columns + k * Lanes<V>::kWidth);
  }
  /// `values` null: all are `otherwise`.
  void gather(const Panel& panel, std::int64_t channels, const float* values, float otherwise = 0.0F) {
    float columns[kPanelColumns] = {};
    if (values != nullptr)
      gather_columns(panel, channels, values, columns);
    else
      for (float& column : columns) column = otherwise;
    load(panel, columns);
  }
};

/// The mean of a block of rows, with the rounding of sums of large numbers.
template <typename V, typename T>
inline void rough_mean(const Panel& panel, const T* x, std::int64_t rows, Columns<V>& mean) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const T* row = x + r * panel.stride;
    for_each_piece<V>(panel, [&](int k) { mean.at[k] += Lanes<V>::load(row + k * Lanes<V>::kWidth); });
  }
  const float inverse = 1.0F / static_cast<float>(rows);
  for_each_piece<V>(panel, [&](int k) { mean.at[k] *= inverse; });
}

/// Mean and m2 of a block of rows, whose deviations from `centre` are added. Their sum, 0 for the exact mean,
/// corrects both.
template <typename V, typename T>
inline void block_moments(const Panel& panel, const T* x, std::int64_t rows, const Columns<V>& centre,
                          Moments& block) {
  using L = Lanes<V>;
  V sum[kMaxPieces<V>] = {}, square[kMaxPieces<V>] = {};
  for (std::int64_t r = 0; r < rows; ++r) {
    const T* row = x + r * panel.stride;
    for_each_piece<V>(panel, [&](int k) {
      const V deviation = L::load(row + k * L::kWidth) - centre.at[k];
      sum[k] += deviation;
      square[k] += deviation * deviation;
    });
  }
  float centres[kPanelColumns] = {}, sums[kPanelColumns] = {}, squares[kPanelColumns] = {};
  for_each_piece<V>(panel, [&](int k) {
    L::store(centres + k * L::kWidth, centre.at[k]);
    L::store(sums + k * L::kWidth, sum[k]);
    L::store(squares + k * L::kWidth, square[k]);
  });
  const double inverse = 1.0 / static_cast<double>(rows);
  for (int i = 0; i < panel.width; ++i) {
    const double correction = static_cast<double>(sums[i]) * inverse;
    const double m2 = static_cast<double>(squares[i]) - correction * static_cast<double>(sums[i]);
    block.mean[i] = static_cast<double>(centres[i]) + correction;
    block.m2[i] = m2 < 0.0 ? 0.0 : m2;  // by rounding only; NaN stays NaN
  }
}

/// The first block is read twice, in the first-level cache: for a rough mean, then centred on it. Later
/// blocks are centred on the mean of those before them. Where that is far from their own, the distance is a
/// part of the panel's m2, so the error stays small in comparison.
template <typename V, typename T>
inline void panel_moments(const Panel& panel, const T* x, Moments& total) {
  Moments block;
  for (std::int64_t r = 0; r < panel.rows; r += kBlockRows) {
    const std::int64_t rows = panel.rows - r < kBlockRows ? panel.rows - r : kBlockRows;
    const T* first = x + panel.offset + r * panel.stride;
    Columns<V> centre;
    if (r == 0) {
      rough_mean<V>(panel, first, rows, centre);
    } else {
      float means[kPanelColumns] = {};
      for (int i = 0; i < panel.width; ++i) means[i] = static_cast<float>(total.mean[i]);
      centre.load(panel, means);
    }
    block_moments<V>(panel, first, rows, centre, r == 0 ? total : block);
    if (r > 0) merge(r, total, rows, block, panel.width);
  }
}

template <typename T>
inline void find_moments(std::int64_t rows, std::int64_t channels, const T* x, double* leaf) {
  leaf[0] = static_cast<double>(rows);
  double *mean = leaf + 1, *m2 = leaf + 1 + channels;
  for (std::int64_t c = 0; c < channels; ++c) mean[c] = m2[c] = 0.0;
  std::int64_t counts[kPanelColumns] = {};  // several columns share a channel only with fewer channels
  for_each_panel(rows, channels, [&]<typename V>(const Panel& panel, V) {
    Moments total;
    if (panel.rows == 0) return;
    panel_moments<V>(panel, x, total);
    if (channels >= kPanelColumns) {
      for (int i = 0; i < panel.width; ++i) {
        mean[panel.channel + i] = total.mean[i];
        m2[panel.channel + i] = total.m2[i];
      }
      return;
    }
    std::int64_t channel = panel.channel;
    for (int i = 0; i < panel.width; ++i) {
      const double a = static_cast<double>(counts[channel]), b = static_cast<double>(panel.rows);
      const double delta = total.mean[i] - mean[channel], share = b / (a + b);
      mean[channel] += delta * share;
      m2[channel] += total.m2[i] + delta * delta * (a * share);
      counts[channel] += panel.rows;
      if (++channel == channels) channel = 0;
    }
  });
}

/// into = the moments of both sets of rows.
inline void add_moments(std::int64_t channels, double* into, const double* right) {
  const double left_count = into[0], right_count = right[0];
  if (right_count == 0) return;
  if (left_count == 0) {
    for (std::int64_t i = 0; i < 1 + 2 * channels; ++i) into[i] = right[i];
    return;
  }
  const double count = left_count + right_count;
  const double mean_weight = right_count / count, m2_weight = left_count * right_count / count;
  for (std::int64_t c = 0; c < channels; ++c) {
    const double delta = right[1 + c] - into[1 + c];
    into[1 + c] += delta * mean_weight;
    into[1 + channels + c] += right[1 + channels + c] + delta * delta * m2_weight;
  }
  into[0] = count;
}

}  // namespace
}  // namespace lockstep::LOCKSTEP_ISA
