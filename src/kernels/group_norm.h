// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Normalisation within a sample: layer, RMS, group and instance norm are one computation with different
// shapes; l2_normalize is separate. Statistics are centred: the variance is the mean of (x - mean)^2, never
// E[x^2] - E[x]^2. The shape fixes the order of sums: float32 within blocks, double across. The bits are the
// same at every instruction-set level and for any address. This header uses plain types only (isa.h).
//
// x, y, dy and dx (ConstData, Data) are float32, bfloat16 or float16, the same type for all of a call. They
// are widened when loaded and rounded once, when stored. Everything else is float32.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/data.h"
#include "kernels/lane.h"

namespace lockstep {

/// x is samples x positions x groups x width, channels last; a channel is an index into groups x width. Each
/// (sample, group) has its own mean and variance, over positions and width; gamma and beta are per channel.
/// Layer norm: positions = groups = 1. Instance norm: width = 1. `centred` false is RMS norm: a mean of 0 in
/// place of the mean of x, so the variance is the mean of x^2; only with positions = groups = 1.
struct GroupNormShape {
  std::int64_t samples = 0, positions = 1, groups = 1, width = 1;
  bool centred = true;
  std::int64_t channels() const { return groups * width; }
};

class GroupNormKernels {
 public:
  virtual ~GroupNormKernels();

  /// Lane scratch in bytes that the calls of this family need for this shape and any smaller number of
  /// samples.
  virtual std::size_t scratch_bytes(const GroupNormShape& shape) const = 0;

  /// y = (x - mean) / sqrt(variance + epsilon) * gamma + beta; gamma null: 1, beta null: 0. statistics[2 *
  /// (sample * groups + group)] = {mean, 1 / sqrt(variance + epsilon)}, for backward; null: not stored. No
  /// aliasing.
  virtual void forward(const Lane&, const GroupNormShape& shape, ConstData x, double epsilon,
                       const float* gamma, const float* beta, float* statistics, Data y) const = 0;
  /// With xhat = (x - mean) / sqrt(variance + epsilon) and g = dy * gamma:
  ///
  /// dx = (g - mean of g - xhat * mean of g xhat) / sqrt(variance + epsilon), with means over the (sample,
  /// group), and without the mean of g if the shape is not centred; dgamma[c] = sum of dy xhat and dbeta[c] =
  /// sum of dy over samples and positions. Each of the three outputs may be null. No aliasing.
  virtual void backward(const Lane&, const GroupNormShape& shape, ConstData x, ConstData dy,
                        const float* gamma, const float* statistics, Data dx, float* dgamma,
                        float* dbeta) const = 0;

  /// Per row: y = x * factor with factor = 1 / sqrt(max(sum of x^2, epsilon)). kept[2 * row] = {factor, 0 if
  /// epsilon was larger, else 1}; kept null: not stored. The sum is in double, so the squares of large x do
  /// not overflow. y may alias x.
  virtual void l2_normalize(const Lane&, std::int64_t rows, std::int64_t channels, ConstData x,
                            double epsilon, float* kept, Data y) const = 0;
  /// dx = factor * (dy - y * sum of dy y), or factor * dy if epsilon was larger. dx may alias dy.
  virtual void l2_normalize_backward(const Lane&, std::int64_t rows, std::int64_t channels, ConstData y,
                                     ConstData dy, const float* kept, Data dx) const = 0;
};

}  // namespace lockstep
