// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Data movement in volumes, channels last: margins and changes of resolution. An image is a volume of depth
// 1; a sequence is an image of height 1. The order of sums is fixed, and CPU and GPU compute the same bits.
// This header uses plain types only (isa.h).
//
// Values (ConstData, Data) are float32, bfloat16 or float16, the same type for all of a call. Copied values
// stay unchanged; sums and interpolations are float32, rounded once, when stored.
#pragma once

#include <cstdint>

#include "core/data.h"
#include "kernels/lane.h"

namespace lockstep {

/// n inner volumes, and the margins around each in a larger volume; axes are depth, height, width.
struct MarginSpec {
  std::int64_t n = 0, inner[3] = {1, 1, 1}, channels = 0;
  std::int64_t before[3] = {0, 0, 0}, after[3] = {0, 0, 0};
  /// True: the axis is a circle, so the elements before the first are the last ones. Each margin of such an
  /// axis is at most `inner`.
  bool circular[3] = {false, false, false};
};

/// n volumes, each of whose axes becomes `factor` times as long.
struct UpsampleSpec {
  std::int64_t n = 0, in[3] = {1, 1, 1}, channels = 0, factor[3] = {1, 1, 1};
  /// For linear interpolation. True: the first and last elements of input and output coincide. False: their
  /// outer edges coincide, so output element o lies at input position (o + 1/2) / factor - 1/2, clamped to
  /// the first and last element.
  bool align_corners = false;
};

class SpatialKernels {
 public:
  virtual ~SpatialKernels();

  /// outer = inner surrounded by `value`, which is rounded to the type, or by inner itself along circular
  /// axes. No aliasing, here and below.
  virtual void pad(const Lane&, const MarginSpec& spec, ConstData inner, float value, Data outer) const = 0;
  /// dinner = sums of the elements of douter that pad() takes from one of inner, added plane by plane and row
  /// by row. Without circular axes it is crop().
  virtual void pad_backward(const Lane&, const MarginSpec& spec, ConstData douter, Data dinner) const = 0;
  /// inner = the part of outer between the margins, which are not circular.
  virtual void crop(const Lane&, const MarginSpec& spec, ConstData outer, Data inner) const = 0;

  /// Element o of y is element o / factor of x, along each axis.
  virtual void upsample_nearest(const Lane&, const UpsampleSpec& spec, ConstData x, Data y) const = 0;
  /// dx = sums of dy, added plane by plane and row by row.
  virtual void upsample_nearest_backward(const Lane&, const UpsampleSpec& spec, ConstData dy,
                                         Data dx) const = 0;
  /// Linear interpolation between the two nearest elements along height and width. The depth must be 1 with
  /// factor 1.
  virtual void upsample_bilinear(const Lane&, const UpsampleSpec& spec, ConstData x, Data y) const = 0;
  virtual void upsample_bilinear_backward(const Lane&, const UpsampleSpec& spec, ConstData dy,
                                          Data dx) const = 0;
};

}  // namespace lockstep
