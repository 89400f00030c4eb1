// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Batch normalisation (Ioffe and Szegedy 2015, arXiv:1502.03167) in pieces, so that ranks can meet between
// them: statistics of a microshard, normalise (+ residual + relu) in one pass, two sums of the backward pass,
// its result. Matrices are rows x channels, row-major. NaN stays NaN, through relu too.
// Activations (ConstData, Data) are float32, bfloat16 or float16, all of one call of one type; what is per
// channel is float32 or double. Arithmetic does not know the type: numbers are widened when they are loaded
// and rounded once, when they are stored; sums are over what was not rounded yet.
// Every instruction-set level gives the same bits at any address. Plain types only (compiled for several
// instruction sets).
#pragma once

#include <cstdint>

#include "core/data.h"
#include "kernels/lane.h"

namespace lockstep {

class NormKernels {
 public:
  virtual ~NormKernels();

  /// leaf = {count, mean[C], m2[C]}, what meets across microshards: the number of rows, and mean[c] and
  /// m2[c] = sum of (x - mean)^2 over them; all zero if rows == 0. One pass over memory: blocks of rows that
  /// stay in fast memory are centred on their own mean, blocks are merged by Chan, Golub and LeVeque 1979 in
  /// double. Never E[x^2] - E[x]^2.
  virtual void moments(const Lane&, std::int64_t rows, std::int64_t channels, ConstData x,
                       double* leaf) const = 0;
  /// into = the moments of the rows of both, by Chan's formula; a leaf of count 0 changes nothing.
  virtual void merge_moments(const Lane&, std::int64_t channels, double* into, const double* right) const = 0;
  /// into += right, width numbers.
  virtual void merge_sums(const Lane&, std::int64_t width, double* into, const double* right) const = 0;

  /// Per-channel numbers of a group of microshards.
  struct Coefficients {
    float* mean = nullptr;
    float* inverse_std = nullptr;
    float* scale = nullptr;  ///< gamma * inverse_std
    float* shift = nullptr;  ///< beta - mean * gamma * inverse_std
    double* precise_inverse_std = nullptr;
    double* count = nullptr;  ///< one number: the group's rows, at least 1
  };
  /// out = coefficients of the moments `total` (a leaf), computed in double. gamma null: 1; beta null: 0.
  virtual void coefficients(const Lane&, std::int64_t channels, const double* total, double epsilon,
                            const float* gamma, const float* beta, Coefficients out) const = 0;
  /// The same from moving statistics; out.count is neither read nor written.
  virtual void inference_coefficients(const Lane&, std::int64_t channels, const float* moving_mean,
                                      const float* moving_variance, double epsilon, const float* gamma,
                                      const float* beta, Coefficients out) const = 0;
  /// moving = momentum * moving + (1 - momentum) * that of `total` (a leaf), with the unbiased variance
  /// m2 / max(count - 1, 1); a total of count 0 changes nothing.
  virtual void moving_average(const Lane&, std::int64_t channels, const double* total, double momentum,
                              float* moving_mean, float* moving_variance) const = 0;

  /// y = x * scale[c] + shift[c] (+ residual), then max(y, 0) if relu. y may alias x or residual.
  virtual void normalize(const Lane&, std::int64_t rows, std::int64_t channels, ConstData x,
                         const float* scale, const float* shift, ConstData residual, bool relu,
                         Data y) const = 0;

  /// What the backward pass reads.
  struct Gradient {
    ConstData dy;   ///< gradient of the output
    ConstData dy2;  ///< a second contribution to it, or null
    ConstData y;    ///< the output: with relu, the gradient passes where y > 0; null: no relu, or mask_from_x
    /// relu without residual: y is found again from x. The gradient passes where y is > 0 as it was stored,
    /// so not where x * scale + shift is a positive number that the type of y rounds to zero (up to 2^-25 in
    /// float16, 2^-134 in bfloat16): y and mask_from_x decide alike in every type.
    bool mask_from_x = false;
    ConstData x;                   ///< the input
    const float* scale = nullptr;  ///< as in normalize (used by mask_from_x)
    const float* shift = nullptr;
    const float* mean = nullptr;  ///< per channel
    const float* inverse_std = nullptr;
  };

  /// g = (dy + dy2) masked; if g_out is not null it is written there (may alias dy or dy2), in 16 bits
  /// rounded, which the sums are not.
  /// sum_g[c] = sum g, sum_gx[c] = sum g * (x - mean) * inverse_std: float32 in blocks of rows, double across
  /// blocks.
  virtual void backward_sums(const Lane&, std::int64_t rows, std::int64_t channels, const Gradient& gradient,
                             Data g_out, double* sum_g, double* sum_gx) const = 0;

  /// a, b, d of backward_apply from the group's sums = {sum_g[C], sum_gx[C]} and its `in`:
  /// a = gamma * inverse_std, b = -a * sum_gx / count * inverse_std, d = -a * sum_g / count, in double.
  virtual void gradient_coefficients(const Lane&, std::int64_t channels, const double* sums,
                                     const float* gamma, Coefficients in, float* a, float* b,
                                     float* d) const = 0;
  /// to = from, rounded: the sums of a microshard are its gradients of beta and gamma.
  virtual void to_float(const Lane&, std::int64_t count, const double* from, float* to) const = 0;

  /// dx = a[c] * g + b[c] * (x - mean[c]) + d[c], with g as above (recomputed from `gradient`; after a
  /// backward_sums that wrote g_out, give that as dy and no mask). dx may alias dy.
  virtual void backward_apply(const Lane&, std::int64_t rows, std::int64_t channels, const Gradient& gradient,
                              const float* a, const float* b, const float* d, Data dx) const = 0;
};

}  // namespace lockstep
