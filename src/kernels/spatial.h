// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What moves values about in volumes, channels last: margins and changes of resolution. An image is a volume
// of depth 1, a sequence an image of height 1. Plain types only (compiled for several instruction sets); sums
// run in one order, and the CPU and a GPU give the same bits.
// Values (ConstData, Data) are float32, bfloat16 or float16, all of one call of one type. What is moved keeps
// its value; sums and interpolations are float32, rounded once, when they are stored.
#pragma once

#include <cstdint>

#include "core/data.h"
#include "kernels/lane.h"

namespace lockstep {

/// n volumes, and what lies around each of them in a larger one; in order depth, height, width.
struct MarginSpec {
  std::int64_t n = 0, inner[3] = {1, 1, 1}, channels = 0;
  std::int64_t before[3] = {0, 0, 0}, after[3] = {0, 0, 0};
};

/// n volumes, each axis to become `factor` times as long.
struct UpsampleSpec {
  std::int64_t n = 0, in[3] = {1, 1, 1}, channels = 0, factor[3] = {1, 1, 1};
  /// Of linear interpolation: the first and last elements of input and output lie on each other. False: their
  /// outer edges do, so element o of the output lies at (o + 1/2) / factor - 1/2 of the input, and is taken
  /// from the first or last element if that is beyond it.
  bool align_corners = false;
};

class SpatialKernels {
 public:
  virtual ~SpatialKernels();

  /// outer = inner with `value`, rounded to the type, around it. No aliasing, here and below.
  virtual void pad(const Lane&, const MarginSpec& spec, ConstData inner, float value, Data outer) const = 0;
  /// inner = what lies between the margins of outer.
  virtual void crop(const Lane&, const MarginSpec& spec, ConstData outer, Data inner) const = 0;

  /// Element o of y is element o / factor of x, along each axis.
  virtual void upsample_nearest(const Lane&, const UpsampleSpec& spec, ConstData x, Data y) const = 0;
  /// dx = sums of dy, plane by plane and row by row.
  virtual void upsample_nearest_backward(const Lane&, const UpsampleSpec& spec, ConstData dy,
                                         Data dx) const = 0;
  /// Linear between the two nearest elements along height and width; the depth must be 1 and stay so.
  virtual void upsample_bilinear(const Lane&, const UpsampleSpec& spec, ConstData x, Data y) const = 0;
  virtual void upsample_bilinear_backward(const Lane&, const UpsampleSpec& spec, ConstData dy,
                                          Data dx) const = 0;
};

}  // namespace lockstep
