// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Element-wise kernels and sums over rows. Matrices are rows x channels, row-major, dense; `count` is a
// number of elements. Outputs may alias inputs of the same shape unless stated otherwise. Data arguments may
// have any activation type, the same for all of a call unless stated otherwise: kernels widen them, compute
// in float32 and round when storing. The shape alone fixes the order of all sums. The bits are the same at
// every instruction-set level and for any address. This header uses plain types only (isa.h).
//
// Why relu is a pass of its own and not a post-op of a convolution or product: the post-op of oneDNN turns
// NaN into 0, cuBLASLt documents its epilogue as max(x, 0), and CUDA's maximum of NaN and 0 is 0.
// train.on_nan must see the NaN. The pass runs right after the primitive, while the output is in cache, or as
// part of the pass of batch norm or add, so it costs a separate one only elsewhere.
#pragma once

#include <cstdint>

#include "core/data.h"
#include "kernels/lane.h"

namespace lockstep {

class ElementwiseKernels {
 public:
  virtual ~ElementwiseKernels();

  /// to = from in to's type, rounded as in core/half.h. No aliasing.
  virtual void convert(const Lane&, std::int64_t count, ConstData from, Data to) const = 0;
  /// y = 0.
  virtual void zero(const Lane&, std::int64_t count, Data y) const = 0;
  /// into += from.
  virtual void accumulate(const Lane&, std::int64_t count, Data into, ConstData from) const = 0;
  /// into = r(into) + r(from), and r of that if it is the `total`; r rounds to bfloat16. `from` is float32 or
  /// bfloat16. For sums of nodes (comm/node_arithmetic.h). No aliasing.
  virtual void accumulate_rounded(const Lane&, std::int64_t count, float* into, ConstData from,
                                  bool total) const = 0;
  /// values = r(values).
  virtual void round_to_bfloat16(const Lane&, std::int64_t count, float* values) const = 0;
  /// y = a + b, then max(y, 0) if relu. NaN stays NaN, here and in relu().
  virtual void add(const Lane&, std::int64_t count, ConstData a, ConstData b, Data y, bool relu) const = 0;
  /// y = y + bias[c] for each of the rows, then max(y, 0) if relu.
  virtual void add_bias(const Lane&, std::int64_t rows, std::int64_t channels, const float* bias, Data y,
                        bool relu) const = 0;
  /// y = a * x.
  virtual void scale(const Lane&, std::int64_t count, float a, ConstData x, Data y) const = 0;
  /// into = into + weight * (from - into), each operation rounded: the update of a moving average.
  virtual void blend(const Lane&, std::int64_t count, float* into, const float* from, float weight) const = 0;
  /// Exchanges the contents of a and b, which do not overlap.
  virtual void exchange(const Lane&, std::int64_t count, float* a, float* b) const = 0;
  /// y = max(x, 0).
  virtual void relu(const Lane&, std::int64_t count, ConstData x, Data y) const = 0;
  /// dx = dy where y > 0, else 0; y is relu's output.
  virtual void relu_backward(const Lane&, std::int64_t count, ConstData dy, ConstData y, Data dx) const = 0;
  /// Bias gradient, combined with relu's backward pass: g = dy where y > 0, else 0 (y null: g = dy). g is
  /// stored unless null and may alias dy. column_sums[c] = sum over rows of g (float32 within blocks of rows,
  /// double across blocks).
  virtual void mask_and_sum_rows(const Lane&, std::int64_t rows, std::int64_t channels, ConstData dy,
                                 ConstData y, Data g, float* column_sums) const = 0;
  /// Mean over the inner rows of each sample: x is n x positions x channels, y is n x channels. No aliasing.
  virtual void global_average(const Lane&, std::int64_t n, std::int64_t positions, std::int64_t channels,
                              ConstData x, Data y) const = 0;
  /// dx[n][p][c] = dy[n][c] / positions. No aliasing.
  virtual void global_average_backward(const Lane&, std::int64_t n, std::int64_t positions,
                                       std::int64_t channels, ConstData dy, Data dx) const = 0;
  /// Inverted dropout: y = x * (1 / (1 - rate)), with the factor rounded to float32, where the element's
  /// uniform number is >= rate, else 0. Element e of sample s (0 <= s < n, e < features) uses word e % 4 of
  /// philox_words(seed, purpose, step, first_sample + s, e / 4). The same call on dy is the backward pass.
  /// The mask does not depend on rank, microshard or type. If the lane has a step_word, its value replaces
  /// `step`.
  virtual void dropout(const Lane&, std::int64_t n, std::int64_t features, ConstData x, float rate,
                       std::uint64_t seed, std::uint32_t purpose, std::uint32_t step,
                       std::uint32_t first_sample, Data y) const = 0;
  /// y = x + stddev * z with standard normal z (box_muller.h). Element e of sample s uses the pair of words
  /// that contains word e % 4 of dropout's block: the cosine for even e, the sine for odd e.
  virtual void gaussian_noise(const Lane&, std::int64_t n, std::int64_t features, ConstData x, float stddev,
                              std::uint64_t seed, std::uint32_t purpose, std::uint32_t step,
                              std::uint32_t first_sample, Data y) const = 0;
};

}  // namespace lockstep
