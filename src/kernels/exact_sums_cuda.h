// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Convolutions of small whole numbers, for checks of library plans (private to this room). A number of an
// operand is a hash of its place: -1 or 1, and in one of the two operands mostly 0 where a sum would
// otherwise be too large for its type. So a plain kernel computes any element of the result without reading
// memory, and every order of its sum is exact. Plain C++: for host and device code.
//
// A matrix product is a convolution of one position: y (n x out_c) = x (n x in_c) times the kernel (out_c x
// in_c), each with strides of its own.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "core/data.h"

namespace lockstep::cuda {

inline constexpr int kOperandAxes = 5;  ///< samples or output channels, depth, height, width, channels

/// Where an operand's numbers are: at the sum of coordinate * stride, in elements, without gaps.
struct OperandLayout {
  std::int64_t extent[kOperandAxes] = {}, stride[kOperandAxes] = {};
};

/// y[n, out, o] = sum of x[n, out * stride - padding + k * dilation, c] * kernel[o, k, c % (channels of a
/// group)] over k and the channels c of o's group (+ bias[o]), or a gradient of it.
struct ExactSums {
  enum Operand : int { x, kernel, y };
  Operand written = y;
  OperandLayout layout[3];  ///< by operand
  std::int64_t groups = 1;
  std::int64_t padding[3] = {}, stride[3] = {}, dilation[3] = {};  ///< depth, height, width
  bool bias = false;                                               ///< of y
  /// The operand with zeros: the one that holds all axes that a sum runs over.
  Operand sparse = kernel;
  bool summed[kOperandAxes] = {};          ///< the sparse operand's axes that a sum runs over
  std::int64_t period[kOperandAxes] = {};  ///< the length of such an axis: a group's channels repeat
  /// By the set of summed axes (bit 0: the first) along which a number lies at an end: it is 0 unless the
  /// upper 31 bits of its hash are at most this.
  std::uint32_t limit[1 << kOperandAxes] = {};
};

inline constexpr int kCheckedElements = 256;
/// A float32 number that is no farther from a whole one is that number with a rounding error. Numbers of 16
/// bits are whole.
inline constexpr float kRoundingError = 1.0F / 16;

/// What a check found, in device memory.
struct CheckedSums {
  struct Element {
    std::int64_t place;      ///< of the element in the result
    float expected, actual;  ///< the sum, rounded to the result's type; what the plan has written
  };
  Element elements[kCheckedElements];  ///< equal numbers at place 0 where the result has fewer
  std::int32_t sums[kCheckedElements];
  /// Elements of the result that are no whole numbers: not written, if the result was filled with NaN.
  unsigned long long broken;
  /// Elements that are whole numbers but for a rounding error.
  unsigned long long inexact;
  /// Bytes after the result that do not have the value 0xFF any more.
  unsigned long long written_past_end;
};

/// Writes the numbers of an operand, in the type of `to`.
void write_operand(cudaStream_t stream, const ExactSums& sums, ExactSums::Operand operand, Data to);
/// Writes -1 or 1 to `count` numbers.
void write_bias(cudaStream_t stream, std::int64_t count, Data to);
/// Compares kCheckedElements elements of the result with sums of their own: all corners, and elements that
/// lie at or next to the ends of some axes; all elements of a result that has no more. Looks at every
/// element, and at `guard_bytes` bytes after the last one.
void check_sums(cudaStream_t stream, const ExactSums& sums, ConstData result, std::int64_t guard_bytes,
                CheckedSums* found);

}  // namespace lockstep::cuda
