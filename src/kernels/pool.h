// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Pooling over volumes, channels last: the shape, and the kernels that PoolPrimitive uses (primitives.h).
// This header uses plain types only (isa.h).
//
// Why own kernels: the max pooling of oneDNN 2.6 loses NaN, so a broken activation would go unnoticed. Here
// NaN propagates, and the bits are the same at every instruction-set level.
#pragma once

#include <cstdint>

#include "core/data.h"

namespace lockstep {

enum class PoolKind { max, average };
/// Windows over n volumes, channels last. An image is a volume of depth 1; a sequence is an image of height
/// 1. Padding counts as -inf for max and is excluded from the mean for average.
struct PoolSpec {
  PoolKind kind = PoolKind::max;
  std::int64_t n = 0, in_d = 1, in_h = 1, in_w = 0, channels = 0, out_d = 1, out_h = 1, out_w = 0;
  std::int64_t window_d = 1, window_h = 1, window_w = 1, stride_d = 1, stride_h = 1, stride_w = 1;
  std::int64_t pad_front = 0, pad_back = 0, pad_top = 0, pad_bottom = 0, pad_left = 0, pad_right = 0;
  bool training = true;
  DType dtype = DType::f32;  ///< of x, y and their gradients

  /// True if every element lies in exactly one window.
  LOCKSTEP_INLINED bool tiles() const {
    return window_d == stride_d && pad_front == 0 && out_d * stride_d == in_d && window_h == stride_h &&
           pad_top == 0 && out_h * stride_h == in_h && window_w == stride_w && pad_left == 0 &&
           out_w * stride_w == in_w;
  }
};

/// x is n x in_d x in_h x in_w x channels; y is n x out_d x out_h x out_w x channels; no aliasing. Every
/// window has a position in the volume; the caller has checked it. Positions of a window are numbered plane
/// by plane and row by row, from 0, including padding. x, y and their gradients have one activation type;
/// sums are float32, rounded once.
class PoolKernels {
 public:
  virtual ~PoolKernels();

  /// y = the largest value of each window; a NaN is larger than any number. positions (shaped like y; may be
  /// null) = the first position of that value in the window.
  virtual void max_forward(const PoolSpec& spec, ConstData x, Data y, std::int32_t* positions) const = 0;
  /// dx (overwritten) = sums of dy at the positions. sums: room for one volume, needed if dx is not float32
  /// and the spec does not tile.
  virtual void max_backward(const PoolSpec& spec, ConstData dy, const std::int32_t* positions, Data dx,
                            float* sums) const = 0;
  /// y = the mean over each window's positions in the volume, summed in position order.
  virtual void average_forward(const PoolSpec& spec, ConstData x, Data y) const = 0;
  /// dx (overwritten) = sums of dy / (number of the window's positions in the volume). sums as in
  /// max_backward.
  virtual void average_backward(const PoolSpec& spec, ConstData dy, Data dx, float* sums) const = 0;
};

}  // namespace lockstep
