// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// For files compiled per instruction-set level (isa.h): a vector of floats as wide as the level's registers,
// and panels, the cut of a rows x channels matrix into pieces 64 columns wide.
//
// A matrix of few channels is seen as a wider one: with C = 16, four rows side by side are one row of 64
// columns, column j of which is channel j % 16. So the running sums of a panel stay in registers for every
// number of channels, and lanes never depend on each other: the level's width changes no bit.
#pragma once

#include <cstdint>

namespace lockstep {
namespace {  // each file's own: its width is that of the level it is compiled for

#if defined(__AVX512F__)
constexpr int kLanes = 16;
#elif defined(__AVX2__)
constexpr int kLanes = 8;
#else
constexpr int kLanes = 4;
#endif

constexpr int kPanelColumns = 64;

using Vec = float __attribute__((vector_size(kLanes * sizeof(float))));
using UnalignedVec = float __attribute__((vector_size(kLanes * sizeof(float)), aligned(4), may_alias));

/// What the kernels' inner loops are written over: a register of columns, or one column.
template <typename V>
struct Lanes;
template <>
struct Lanes<Vec> {
  static constexpr int kWidth = kLanes;
  static Vec load(const float* p) { return *reinterpret_cast<const UnalignedVec*>(p); }
  static void store(float* p, Vec v) { *reinterpret_cast<UnalignedVec*>(p) = v; }
};
template <>
struct Lanes<float> {
  static constexpr int kWidth = 1;
  static float load(const float* p) { return *p; }
  static void store(float* p, float v) { *p = v; }
};

/// `rows` rows of `width` columns, the first at element `offset`, `stride` elements apart. Column i belongs
/// to channel (channel + i) % channels.
struct Panel {
  std::int64_t offset, rows, stride, channel;
  int width;  ///< kPanelColumns, or less: then the kernels use Lanes<float>
};

constexpr std::int64_t greatest_common_divisor(std::int64_t a, std::int64_t b) {
  return b == 0 ? a : greatest_common_divisor(b, a % b);
}

/// Calls body(panel, v) for each panel, in a fixed order; v is a Vec for panels of full width, else a float.
/// Every element lies in one panel. With 64 channels or more, every channel lies in one panel.
template <typename Body>
inline void for_each_panel(std::int64_t rows, std::int64_t channels, const Body& body) {
  if (channels >= kPanelColumns) {
    std::int64_t channel = 0;
    for (; channel + kPanelColumns <= channels; channel += kPanelColumns)
      body(Panel{channel, rows, channels, channel, kPanelColumns}, Vec{});
    if (channel < channels)
      body(Panel{channel, rows, channels, channel, static_cast<int>(channels - channel)}, 0.0F);
    return;
  }
  const std::int64_t side_by_side = kPanelColumns / greatest_common_divisor(channels, kPanelColumns);
  const std::int64_t wide_rows = rows / side_by_side, wide = channels * side_by_side;
  if (wide_rows > 0)
    for (std::int64_t column = 0; column < wide; column += kPanelColumns)
      body(Panel{column, wide_rows, wide, column % channels, kPanelColumns}, Vec{});
  const std::int64_t done = wide_rows * side_by_side;
  if (done < rows) body(Panel{done * channels, rows - done, channels, 0, static_cast<int>(channels)}, 0.0F);
}

/// Registers (or columns) in a panel's row; a constant for full panels, so that loops over it unroll.
template <typename V>
inline int pieces(const Panel& panel) {
  return Lanes<V>::kWidth == 1 ? panel.width : kPanelColumns / Lanes<V>::kWidth;
}
template <typename V>
constexpr int kMaxPieces = kPanelColumns / Lanes<V>::kWidth;

/// values[channel of column i] for the columns of a panel.
inline void gather_columns(const Panel& panel, std::int64_t channels, const float* values, float* columns) {
  std::int64_t channel = panel.channel;
  for (int i = 0; i < panel.width; ++i) {
    columns[i] = values[channel];
    if (++channel == channels) channel = 0;
  }
}

}  // namespace
}  // namespace lockstep
