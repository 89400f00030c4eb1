// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Batch normalisation (Ioffe and Szegedy 2015, arXiv:1502.03167) in parts, so that ranks can synchronise
// between them: the statistics of a microshard, normalisation (+ residual + relu) in one pass, two sums of
// the backward pass, and the input gradient. Matrices are rows x channels, row-major. NaN stays NaN, also
// through relu.
//
// Activations (ConstData, Data) are float32, bfloat16 or float16, the same type for all of a call;
// per-channel values are float32 or double. Arithmetic does not depend on the type: numbers are widened when
// loaded and rounded once, when stored, and sums use the unrounded values. The bits are the same at every
// instruction-set level and for any address. This header uses plain types only (isa.h).
#pragma once

#include <cstdint>

#include "core/data.h"
#include "core/tree_merges.h"
#include "kernels/lane.h"

namespace lockstep {

class NormKernels {
 public:
  virtual ~NormKernels();

  /// leaf = {count, mean[C], m2[C]}, which is merged across microshards: the number of rows, mean[c], and
  /// m2[c] = sum of (x - mean)^2 over the rows; all zero if rows == 0. One pass over memory: the rows of a
  /// block are centred on a number near their mean before they are added in float32, the sum of the centred
  /// rows corrects both results (the corrected two-pass algorithm), and blocks are merged in double by the
  /// formula of Chan, Golub and LeVeque 1979. Never E[x^2] - E[x]^2. So a large mean costs neither result a
  /// digit.
  virtual void moments(const Lane&, std::int64_t rows, std::int64_t channels, ConstData x,
                       double* leaf) const = 0;
  /// Merges leaves along trees, by Chan's formula; a leaf of count 0 changes nothing. Overwrites the leaves
  /// at `in`. No result may lie where a leaf lies.
  virtual void merge_moments(const Lane&, std::int64_t channels, const TreeMerges& tree, double* in,
                             double* out) const = 0;
  /// The same for sums of `width` numbers.
  virtual void merge_sums(const Lane&, std::int64_t width, const TreeMerges& tree, double* in,
                          double* out) const = 0;

  /// Per-channel values of a group of microshards.
  struct Coefficients {
    float* mean = nullptr;  ///< rounded to float32
    float* inverse_std = nullptr;
    float* scale = nullptr;       ///< gamma * inverse_std
    float* shift = nullptr;       ///< beta - mean_rest * gamma * inverse_std
    double* mean_rest = nullptr;  ///< the mean before it was rounded, minus `mean`
    double* precise_inverse_std = nullptr;
    double* count = nullptr;  ///< one number: the group's row count, at least 1
  };
  /// out = coefficients from the moments `total` (a leaf), computed in double. gamma null: 1; beta null: 0.
  virtual void coefficients(const Lane&, std::int64_t channels, const double* total, double epsilon,
                            const float* gamma, const float* beta, Coefficients out) const = 0;
  /// The same from the moving statistics; out.count is neither read nor written.
  virtual void inference_coefficients(const Lane&, std::int64_t channels, const float* moving_mean,
                                      const float* moving_variance, double epsilon, const float* gamma,
                                      const float* beta, Coefficients out) const = 0;
  /// moving = momentum * moving + (1 - momentum) * statistic of `total` (a leaf), with the unbiased variance
  /// m2 / (count - 1). A total of count 0 or 1 changes nothing: one value has no variance.
  virtual void moving_average(const Lane&, std::int64_t channels, const double* total, double momentum,
                              float* moving_mean, float* moving_variance) const = 0;

  /// y = (x - mean[c]) * scale[c] + shift[c] (+ residual), then max(y, 0) if relu. mean null: 0, scale null:
  /// 1. The difference comes first, so that a large mean cancels before it is rounded with the product. y may
  /// alias x or residual.
  virtual void normalize(const Lane&, std::int64_t rows, std::int64_t channels, ConstData x,
                         const float* mean, const float* scale, const float* shift, ConstData residual,
                         bool relu, Data y) const = 0;

  /// Inputs of the backward pass.
  struct Gradient {
    ConstData dy;   ///< output gradient
    ConstData dy2;  ///< second contribution to the output gradient, or null
    ConstData y;    ///< output; with relu, the gradient passes where y > 0; null: no relu, or mask_from_x
    /// For relu without residual: recomputes y from x. The gradient passes where the stored y is > 0. It does
    /// not pass where normalize() yields a positive number that rounds to zero in the type of y (up to 2^-25
    /// in float16, 2^-134 in bfloat16). So y and mask_from_x yield the same mask in every type.
    bool mask_from_x = false;
    ConstData x;                   ///< the input
    const float* scale = nullptr;  ///< as in normalize; used by mask_from_x
    const float* shift = nullptr;
    const float* mean = nullptr;         ///< per channel
    const double* mean_rest = nullptr;   ///< as in Coefficients; null: 0. Used by backward_sums
    const float* inverse_std = nullptr;  ///< used by backward_sums
  };

  /// g = (dy + dy2) masked. g_out receives g unless null and may alias dy or dy2; in 16-bit types it is
  /// rounded, while the sums use the unrounded g.
  ///
  /// sum_g[c] = sum g and sum_gx[c] = sum g * (x - mean - mean_rest) * inverse_std: float32 in blocks of
  /// rows, double across blocks and for mean_rest.
  virtual void backward_sums(const Lane&, std::int64_t rows, std::int64_t channels, const Gradient& gradient,
                             Data g_out, double* sum_g, double* sum_gx) const = 0;

  /// a, b, d for backward_apply from the group's sums = {sum_g[C], sum_gx[C]} and its coefficients `in`: a =
  /// gamma * inverse_std, b = -a * sum_gx / count * inverse_std, d = -a * sum_g / count - b * mean_rest, in
  /// double.
  virtual void gradient_coefficients(const Lane&, std::int64_t channels, const double* sums,
                                     const float* gamma, Coefficients in, float* a, float* b,
                                     float* d) const = 0;
  /// to = from, rounded to float32. The sums of a microshard are its gradients of beta and gamma.
  virtual void to_float(const Lane&, std::int64_t count, const double* from, float* to) const = 0;

  /// dx = a[c] * g + b[c] * (x - mean[c]) + d[c], with g as in backward_sums, recomputed from `gradient`. If
  /// backward_sums wrote g_out, pass it as dy and no mask. dx may alias dy.
  virtual void backward_apply(const Lane&, std::int64_t rows, std::int64_t channels, const Gradient& gradient,
                              const float* a, const float* b, const float* d, Data dx) const = 0;
};

}  // namespace lockstep
