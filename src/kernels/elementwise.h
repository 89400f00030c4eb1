// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Element-wise kernels and sums over rows. Matrices are rows x channels, row-major, dense; `count` is
// elements. Outputs may alias inputs of the same shape unless said otherwise. What is Data may be of any type
// of activations, of one in a call unless said otherwise: it is widened, computed with in float32, and
// rounded when it is stored. All sums run in a fixed order that depends on the shape alone, and every
// instruction-set level gives the same bits at any address. This header is included by files compiled for
// several instruction sets: plain types only.
#pragma once

#include <cstdint>

#include "core/data.h"
#include "kernels/lane.h"

namespace lockstep {

class ElementwiseKernels {
 public:
  virtual ~ElementwiseKernels();

  /// to = from in to's type, as core/half.h rounds. No aliasing.
  virtual void convert(const Lane&, std::int64_t count, ConstData from, Data to) const = 0;
  /// y = 0.
  virtual void zero(const Lane&, std::int64_t count, Data y) const = 0;
  /// into += from.
  virtual void accumulate(const Lane&, std::int64_t count, Data into, ConstData from) const = 0;
  /// y = a + b, then max(y, 0) if relu (NaN stays NaN, here and in relu).
  virtual void add(const Lane&, std::int64_t count, ConstData a, ConstData b, Data y, bool relu) const = 0;
  /// y = y + bias[c] for each of the rows, then max(y, 0) if relu.
  virtual void add_bias(const Lane&, std::int64_t rows, std::int64_t channels, const float* bias, Data y,
                        bool relu) const = 0;
  /// y = a * x.
  virtual void scale(const Lane&, std::int64_t count, float a, ConstData x, Data y) const = 0;
  /// y = max(x, 0).
  virtual void relu(const Lane&, std::int64_t count, ConstData x, Data y) const = 0;
  /// dx = dy where y > 0, else 0; y is relu's output.
  virtual void relu_backward(const Lane&, std::int64_t count, ConstData dy, ConstData y, Data dx) const = 0;
  /// Bias gradient, with relu's backward on the way: g = dy where y > 0 else 0 (y null: g = dy); written to g
  /// (may be null, may alias dy); column_sums[c] = sum over rows of g (float32 within blocks of rows, double
  /// across).
  virtual void mask_and_sum_rows(const Lane&, std::int64_t rows, std::int64_t channels, ConstData dy,
                                 ConstData y, Data g, float* column_sums) const = 0;
  /// Mean over the inner rows of each sample: x is n x positions x channels, y is n x channels. No aliasing.
  virtual void global_average(const Lane&, std::int64_t n, std::int64_t positions, std::int64_t channels,
                              ConstData x, Data y) const = 0;
  /// dx[n][p][c] = dy[n][c] / positions. No aliasing.
  virtual void global_average_backward(const Lane&, std::int64_t n, std::int64_t positions,
                                       std::int64_t channels, ConstData dy, Data dx) const = 0;
  /// Inverted dropout: y = x * (1 / (1 - rate)), the factor rounded to float32, where the element's uniform
  /// number is >= rate, else 0. Element e of sample s (0 <= s < n, e < features) uses word e % 4 of
  /// philox_words(seed, purpose, step, first_sample + s, e / 4), so the same call on dy is the backward pass,
  /// and neither rank nor microshard, nor the type, shows in the mask. Where the lane has a step_word, that
  /// is the step.
  virtual void dropout(const Lane&, std::int64_t n, std::int64_t features, ConstData x, float rate,
                       std::uint64_t seed, std::uint32_t purpose, std::uint32_t step,
                       std::uint32_t first_sample, Data y) const = 0;
  /// y = x + stddev * z with standard normal z (box_muller.h). Element e of sample s takes words e % 4 and
  /// its neighbour in the pair of the block that dropout takes: the cosine for even e, the sine for odd.
  virtual void gaussian_noise(const Lane&, std::int64_t n, std::int64_t features, ConstData x, float stddev,
                              std::uint64_t seed, std::uint32_t purpose, std::uint32_t step,
                              std::uint32_t first_sample, Data y) const = 0;
};

}  // namespace lockstep
