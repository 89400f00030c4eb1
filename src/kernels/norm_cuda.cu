// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Batch normalisation on a GPU. Each pass over the activations is one kernel, plus a small one if chunks of
// rows must be merged. Per-channel values are computed in double, with the CPU's operations in the CPU's
// order.
#include "kernels/norm.h"

#include "kernels/cuda_columns.h"
#include "kernels/factory_cuda.h"
#include "kernels/norm_merges_cuda.h"
#include "kernels/norm_moments_cuda.h"

namespace lockstep::cuda {
namespace {

// Per channel: one thread each
// -------------------------------------------------------------------------------------------------------------

template <typename Op>
__global__ void __launch_bounds__(kThreads) per_channel_kernel(std::int64_t count, Op op) {
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * kThreads;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; i < count;
       i += stride)
    op(i);
}
template <typename Op>
void for_each_channel(const Lane& lane, const char* name, std::int64_t count, const Op& op) {
  if (count > 0) launch(lane, name, per_channel_kernel<Op>, blocks_for(count), kThreads, count, op);
}

inline __device__ void set_channel(const NormKernels::Coefficients& out, std::int64_t c, double mean,
                                   double variance, double epsilon, const float* gamma, const float* beta) {
  const double scale = gamma == nullptr ? 1.0 : static_cast<double>(gamma[c]);
  const double shift = beta == nullptr ? 0.0 : static_cast<double>(beta[c]);
  const double inverse_std = 1.0 / sqrt(variance + epsilon);
  const float rounded_mean = static_cast<float>(mean);
  const double rest = mean - static_cast<double>(rounded_mean);
  out.precise_inverse_std[c] = inverse_std;
  out.mean[c] = rounded_mean;
  out.mean_rest[c] = rest;
  out.inverse_std[c] = static_cast<float>(inverse_std);
  out.scale[c] = static_cast<float>(scale * inverse_std);
  out.shift[c] = static_cast<float>(shift - rest * scale * inverse_std);
}
struct SetCoefficients {
  std::int64_t channels;
  const double* total;
  double epsilon;
  const float* gamma;
  const float* beta;
  NormKernels::Coefficients out;
  __device__ void operator()(std::int64_t c) const {
    const double count = total[0] > 1.0 ? total[0] : 1.0;
    if (c == 0) *out.count = count;
    set_channel(out, c, total[1 + c], total[1 + channels + c] / count, epsilon, gamma, beta);
  }
};
struct SetInference {
  const float* mean;
  const float* variance;
  double epsilon;
  const float* gamma;
  const float* beta;
  NormKernels::Coefficients out;
  __device__ void operator()(std::int64_t c) const {
    set_channel(out, c, static_cast<double>(mean[c]), static_cast<double>(variance[c]), epsilon, gamma, beta);
  }
};
struct MovingAverage {
  std::int64_t channels;
  const double* total;
  double momentum;
  float* mean;
  float* variance;
  __device__ void operator()(std::int64_t c) const {
    if (total[0] <= 1) return;
    const double degrees = total[0] - 1.0;
    const double unbiased = total[1 + channels + c] / degrees;
    mean[c] = static_cast<float>(momentum * static_cast<double>(mean[c]) + (1.0 - momentum) * total[1 + c]);
    variance[c] =
        static_cast<float>(momentum * static_cast<double>(variance[c]) + (1.0 - momentum) * unbiased);
  }
};
struct GradientCoefficients {
  std::int64_t channels;
  const double* sums;
  const float* gamma;
  NormKernels::Coefficients in;
  float* a;
  float* b;
  float* d;
  __device__ void operator()(std::int64_t c) const {
    const double count = *in.count, inverse_std = in.precise_inverse_std[c];
    const double factor = (gamma == nullptr ? 1.0 : static_cast<double>(gamma[c])) * inverse_std;
    const double slope = -factor * sums[channels + c] / count * inverse_std;
    a[c] = static_cast<float>(factor);
    b[c] = static_cast<float>(slope);
    d[c] = static_cast<float>(-factor * sums[c] / count - slope * in.mean_rest[c]);
  }
};
struct ToFloat {
  const double* from;
  float* to;
  __device__ void operator()(std::int64_t i) const { to[i] = static_cast<float>(from[i]); }
};

// Passes over the activations
// -------------------------------------------------------------------------------------------------------------

template <bool kResidual, bool kRelu, typename T>
struct Normalize {
  const T* x;
  const float* mean;
  const float* scale;
  const float* shift;
  const T* residual;
  T* y;
  template <typename V>
  struct Kept {
    Pack<V::kWidth> mean, scale, shift;
  };
  template <typename V>
  __device__ Kept<V> column(std::int64_t channel) const {
    Kept<V> kept{{}, {}, V::load(shift + channel)};
    for (int k = 0; k < V::kWidth; ++k) kept.scale.at[k] = 1.0F;
    if (mean != nullptr) kept.mean = V::load(mean + channel);
    if (scale != nullptr) kept.scale = V::load(scale + channel);
    return kept;
  }
  template <typename V>
  __device__ void row(const Kept<V>& kept, std::int64_t at, std::int64_t) const {
    auto value = V::load(x + at);
    Pack<V::kWidth> other{};
    if (kResidual) other = V::load(residual + at);
    for (int k = 0; k < V::kWidth; ++k) {
      value.at[k] = (value.at[k] - kept.mean.at[k]) * kept.scale.at[k] + kept.shift.at[k];
      if (kResidual) value.at[k] += other.at[k];
      if (kRelu) value.at[k] = positive_part(value.at[k]);
    }
    V::store(y + at, value);
  }
};

/// The arrays of norm.h's Gradient, all of type T.
template <typename T>
struct Rows {
  const T *dy, *dy2, *y, *x;
  const float *scale, *shift, *mean;
  bool mask_from_x;
  explicit Rows(const NormKernels::Gradient& g)
      : dy(g.dy.as<T>()),
        dy2(g.dy2.as<T>()),
        y(g.mask_from_x ? nullptr : g.y.as<T>()),
        x(g.x.as<T>()),
        scale(g.scale),
        shift(g.shift),
        mean(g.mean),
        mask_from_x(g.mask_from_x) {}
  /// Whether all addresses, including the destination's, are wide_aligned().
  bool wide(const T* written) const {
    return wide_aligned(x, dy, dy2, y, written) && wide_aligned(scale, shift, mean);
  }
};

/// A piece of a row in the backward pass: x - mean, and g of norm.h's Gradient.
template <typename V>
struct Row {
  Pack<V::kWidth> centred, g;
};
template <typename V>
struct MaskKept {
  Pack<V::kWidth> mean, scale, shift;
};
template <typename V, typename T>
__device__ MaskKept<V> mask_kept(const Rows<T>& gradient, std::int64_t channel) {
  MaskKept<V> kept{V::load(gradient.mean + channel), {}, {}};
  if (gradient.mask_from_x) {
    kept.scale = V::load(gradient.scale + channel);
    kept.shift = V::load(gradient.shift + channel);
  }
  return kept;
}
/// The numbers of a row as they are in memory.
template <typename V, typename T>
struct RawRow {
  typename V::template Raw<T> x, dy, dy2, y;
};
template <typename V, typename T>
__device__ RawRow<V, T> fetch_row(const Rows<T>& gradient, std::int64_t at) {
  RawRow<V, T> raw{V::fetch(gradient.x + at), V::fetch(gradient.dy + at), {}, {}};
  if (gradient.dy2 != nullptr) raw.dy2 = V::fetch(gradient.dy2 + at);
  if (gradient.y != nullptr) raw.y = V::fetch(gradient.y + at);
  return raw;
}
template <typename V, typename T>
__device__ Row<V> gradient_row(const Rows<T>& gradient, const MaskKept<V>& kept, const RawRow<V, T>& raw) {
  Row<V> row{V::template unpack<T>(raw.x), V::template unpack<T>(raw.dy)};
  for (int k = 0; k < V::kWidth; ++k) row.centred.at[k] -= kept.mean.at[k];
  if (gradient.dy2 != nullptr) {
    const auto second = V::template unpack<T>(raw.dy2);
    for (int k = 0; k < V::kWidth; ++k) row.g.at[k] += second.at[k];
  }
  if (gradient.mask_from_x) {
    for (int k = 0; k < V::kWidth; ++k)
      row.g.at[k] =
          row.centred.at[k] * kept.scale.at[k] + kept.shift.at[k] > kRoundedToZero<T> ? row.g.at[k] : 0.0F;
  } else if (gradient.y != nullptr) {
    const auto output = V::template unpack<T>(raw.y);
    for (int k = 0; k < V::kWidth; ++k) row.g.at[k] = output.at[k] > 0.0F ? row.g.at[k] : 0.0F;
  }
  return row;
}

template <typename T>
struct BackwardSums {
  using Element = T;
  template <typename V>
  using Fetched = RawRow<V, T>;
  Rows<T> gradient;
  T* g_out;
  template <typename V>
  __device__ MaskKept<V> column(std::int64_t channel) const {
    return mask_kept<V>(gradient, channel);
  }
  template <typename V>
  __device__ Fetched<V> fetch(std::int64_t at) const {
    return fetch_row<V>(gradient, at);
  }
  template <typename V>
  __device__ void add(const MaskKept<V>& kept, const Fetched<V>& fetched, std::int64_t at,
                      Pack<V::kWidth>* sums) const {
    const Row<V> row = gradient_row<V>(gradient, kept, fetched);
    if (g_out != nullptr) V::store(g_out + at, row.g);
    for (int k = 0; k < V::kWidth; ++k) {
      sums[0].at[k] += row.g.at[k];
      sums[1].at[k] += row.g.at[k] * row.centred.at[k];
    }
  }
};
struct WriteBackwardSums {
  const double* mean_rest;
  const float* inverse_std;
  double* sum_g;
  double* sum_gx;
  __device__ void operator()(std::int64_t channel, const double* sums) const {
    const double rest = mean_rest == nullptr ? 0.0 : mean_rest[channel];
    sum_g[channel] = sums[0];
    sum_gx[channel] = (sums[1] - rest * sums[0]) * static_cast<double>(inverse_std[channel]);
  }
};

template <typename T>
struct BackwardApply {
  Rows<T> gradient;
  const float* a;
  const float* b;
  const float* d;
  T* dx;
  template <typename V>
  struct Kept {
    MaskKept<V> mask;
    Pack<V::kWidth> a, b, d;
  };
  template <typename V>
  __device__ Kept<V> column(std::int64_t channel) const {
    return {mask_kept<V>(gradient, channel), V::load(a + channel), V::load(b + channel),
            V::load(d + channel)};
  }
  template <typename V>
  __device__ void row(const Kept<V>& kept, std::int64_t at, std::int64_t) const {
    const Row<V> from = gradient_row<V>(gradient, kept.mask, fetch_row<V>(gradient, at));
    Pack<V::kWidth> result;
    for (int k = 0; k < V::kWidth; ++k)
      result.at[k] = kept.a.at[k] * from.g.at[k] + kept.b.at[k] * from.centred.at[k] + kept.d.at[k];
    V::store(dx + at, result);
  }
};

class Norm final : public NormKernels {
 public:
  void moments(const Lane& lane, std::int64_t rows, std::int64_t channels, ConstData x,
               double* leaf) const override {
    const Moments out{leaf, leaf + 1, leaf + 1 + channels};
    const bool fours = channels % 4 == 0;
    const Columns c = cut_sum(rows, channels);
    double* partial = c.chunks > 1 ? scratch_of(lane) : nullptr;
    with_type(x.type(), [&]<typename T>(T) {
      launch(lane, "moments",
             !fours            ? moments_kernel<Narrow, T>
             : wide_aligned(x) ? moments_kernel<Wide, T>
                               : moments_kernel<Loose, T>,
             c.grid(), kThreads, c, x.as<T>(), partial, out);
    });
    if (c.chunks > 1)
      launch(lane, "moments", merge_chunks_kernel,
             static_cast<unsigned int>((channels + kFinishColumns - 1) / kFinishColumns),
             kFinishColumns * kFinishRows, c, partial, out);
  }

  void merge_moments(const Lane& lane, std::int64_t channels, const TreeMerges& tree, double* in,
                     double* out) const override {
    merge_along_tree<true>(lane, "merge_moments", channels, tree, in, out);
  }

  void merge_sums(const Lane& lane, std::int64_t width, const TreeMerges& tree, double* in,
                  double* out) const override {
    merge_along_tree<false>(lane, "merge_sums", width, tree, in, out);
  }

  void coefficients(const Lane& lane, std::int64_t channels, const double* total, double epsilon,
                    const float* gamma, const float* beta, Coefficients out) const override {
    for_each_channel(lane, "coefficients", channels,
                     SetCoefficients{channels, total, epsilon, gamma, beta, out});
  }

  void inference_coefficients(const Lane& lane, std::int64_t channels, const float* moving_mean,
                              const float* moving_variance, double epsilon, const float* gamma,
                              const float* beta, Coefficients out) const override {
    for_each_channel(lane, "inference_coefficients", channels,
                     SetInference{moving_mean, moving_variance, epsilon, gamma, beta, out});
  }

  void moving_average(const Lane& lane, std::int64_t channels, const double* total, double momentum,
                      float* moving_mean, float* moving_variance) const override {
    for_each_channel(lane, "moving_average", channels,
                     MovingAverage{channels, total, momentum, moving_mean, moving_variance});
  }

  void normalize(const Lane& lane, std::int64_t rows, std::int64_t channels, ConstData x, const float* mean,
                 const float* scale, const float* shift, ConstData residual, bool relu,
                 Data y) const override {
    const bool wide = wide_aligned(x, residual, y) && wide_aligned(mean, scale, shift);
    with_type(x.type(), [&]<typename T>(T) {
      const auto run = [&]<bool kResidual, bool kRelu>() {
        map_columns<T>(
            lane, "normalize", rows, channels, wide,
            Normalize<kResidual, kRelu, T>{x.as<T>(), mean, scale, shift, residual.as<T>(), y.as<T>()});
      };
      if (residual != nullptr && relu)
        run.template operator()<true, true>();
      else if (residual != nullptr)
        run.template operator()<true, false>();
      else if (relu)
        run.template operator()<false, true>();
      else
        run.template operator()<false, false>();
    });
  }

  void backward_sums(const Lane& lane, std::int64_t rows, std::int64_t channels, const Gradient& gradient,
                     Data g_out, double* sum_g, double* sum_gx) const override {
    with_type(gradient.x.type(), [&]<typename T>(T) {
      const Rows<T> typed(gradient);
      T* g = g_out.as<T>();
      sum_columns<2>(lane, "backward_sums", rows, channels, typed.wide(g), BackwardSums<T>{typed, g},
                     WriteBackwardSums{gradient.mean_rest, gradient.inverse_std, sum_g, sum_gx});
    });
  }

  void gradient_coefficients(const Lane& lane, std::int64_t channels, const double* sums, const float* gamma,
                             Coefficients in, float* a, float* b, float* d) const override {
    for_each_channel(lane, "gradient_coefficients", channels,
                     GradientCoefficients{channels, sums, gamma, in, a, b, d});
  }

  void to_float(const Lane& lane, std::int64_t count, const double* from, float* to) const override {
    for_each_channel(lane, "to_float", count, ToFloat{from, to});
  }

  void backward_apply(const Lane& lane, std::int64_t rows, std::int64_t channels, const Gradient& gradient,
                      const float* a, const float* b, const float* d, Data dx) const override {
    with_type(gradient.x.type(), [&]<typename T>(T) {
      const Rows<T> typed(gradient);
      map_columns<T>(lane, "backward_apply", rows, channels, typed.wide(dx.as<T>()) && wide_aligned(a, b, d),
                     BackwardApply<T>{typed, a, b, d, dx.as<T>()});
    });
  }
};

}  // namespace

const NormKernels& norm_kernels() {
  static const Norm kernels;
  return kernels;
}

}  // namespace lockstep::cuda
