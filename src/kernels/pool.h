// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Pooling windows over volumes, channels last: the shape, and the arithmetic behind PoolPrimitive
// (primitives.h). Plain types only (compiled for several instruction sets).
#pragma once

#include <cstdint>

#include "core/data.h"

namespace lockstep {

enum class PoolKind { max, average };
/// Windows over n volumes, channels last; an image is a volume of depth 1, a sequence an image of height 1.
/// Padding counts as -inf for max and is left out of the mean for average.
struct PoolSpec {
  PoolKind kind = PoolKind::max;
  std::int64_t n = 0, in_d = 1, in_h = 1, in_w = 0, channels = 0, out_d = 1, out_h = 1, out_w = 0;
  std::int64_t window_d = 1, window_h = 1, window_w = 1, stride_d = 1, stride_h = 1, stride_w = 1;
  std::int64_t pad_front = 0, pad_back = 0, pad_top = 0, pad_bottom = 0, pad_left = 0, pad_right = 0;
  bool training = true;
  DType dtype = DType::f32;  ///< of x, y and their gradients

  /// Every element lies in one window.
  LOCKSTEP_INLINED bool tiles() const {
    return window_d == stride_d && pad_front == 0 && out_d * stride_d == in_d && window_h == stride_h &&
           pad_top == 0 && out_h * stride_h == in_h && window_w == stride_w && pad_left == 0 &&
           out_w * stride_w == in_w;
  }
};

/// x is n x in_d x in_h x in_w x channels, y is n x out_d x out_h x out_w x channels; no aliasing. Every
/// window has a position in the volume (the caller checked). Positions of a window count plane by plane and
/// row by row, from 0, padding included. x, y and their gradients have one type of activations; sums are
/// float32, rounded once.
class PoolKernels {
 public:
  virtual ~PoolKernels();

  /// y = the largest value of each window; a NaN is larger than any number. positions (as y; may be null) =
  /// where it is first found.
  virtual void max_forward(const PoolSpec& spec, ConstData x, Data y, std::int32_t* positions) const = 0;
  /// dx (overwritten) = sums of dy at the positions. sums: room for a volume's, if dx is not float32 and the
  /// spec does not tile.
  virtual void max_backward(const PoolSpec& spec, ConstData dy, const std::int32_t* positions, Data dx,
                            float* sums) const = 0;
  /// y = the mean of each window's positions in the volume, summed in that order.
  virtual void average_forward(const PoolSpec& spec, ConstData x, Data y) const = 0;
  /// dx (overwritten) = sums of dy / positions in the volume.
  virtual void average_backward(const PoolSpec& spec, ConstData dy, Data dx, float* sums) const = 0;
};

}  // namespace lockstep
