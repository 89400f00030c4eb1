// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Batch normalisation on the CPU, per instruction-set level (isa.h); each function is one pass over memory.
// Sums are in float32 over kBlockRows rows of a panel (vec.h), and in double across blocks and panels.
#include "kernels/norm.h"

#include "kernels/isa.h"
#include "kernels/norm_moments_cpu.h"
#include "kernels/vec.h"

namespace lockstep::LOCKSTEP_ISA {
namespace {

template <typename V, bool kResidual, bool kRelu, typename T>
inline void normalize_panel(const Panel& panel, std::int64_t channels, const T* x, const float* mean,
                            const float* scale, const float* shift, const T* residual, T* y) {
  using L = Lanes<V>;
  Columns<V> centre, factor, constant;
  centre.gather(panel, channels, mean);
  factor.gather(panel, channels, scale, 1.0F);
  constant.gather(panel, channels, shift);
  const V zero = {};
  for (std::int64_t r = 0; r < panel.rows; ++r) {
    const std::int64_t at = panel.offset + r * panel.stride;
    for_each_piece<V>(panel, [&](int k) {
      V value = (L::load(x + at + k * L::kWidth) - centre.at[k]) * factor.at[k] + constant.at[k];
      if constexpr (kResidual) value = value + L::load(residual + at + k * L::kWidth);
      if constexpr (kRelu) value = value < zero ? zero : value;
      L::store(y + at + k * L::kWidth, value);
    });
  }
}

enum class Mask { none, from_y, from_x };

/// The arrays of norm.h's Gradient, all of type T.
template <typename T>
struct Rows {
  const T *dy, *dy2, *y, *x;
  const float *scale, *shift, *mean;
  explicit Rows(const NormKernels::Gradient& g)
      : dy(g.dy.as<T>()),
        dy2(g.dy2.as<T>()),
        y(g.y.as<T>()),
        x(g.x.as<T>()),
        scale(g.scale),
        shift(g.shift),
        mean(g.mean) {}
};

/// g for one piece of one row; `centred` is x - mean.
template <typename V, bool kSecond, Mask kMask, typename T>
inline V gradient_at(const Rows<T>& gradient, std::int64_t at, V centred, V scale, V shift) {
  using L = Lanes<V>;
  const V zero = {};
  V g = L::load(gradient.dy + at);
  if constexpr (kSecond) g = g + L::load(gradient.dy2 + at);
  if constexpr (kMask == Mask::from_y) g = L::load(gradient.y + at) > zero ? g : zero;
  if constexpr (kMask == Mask::from_x) g = centred * scale + shift > zero + kRoundedToZero<T> ? g : zero;
  return g;
}

template <typename V, bool kSecond, Mask kMask, bool kWrite, typename T>
inline void backward_sums_panel(const Panel& panel, std::int64_t channels, const Rows<T>& gradient, T* g_out,
                                double* sum_g, double* sum_gx) {
  using L = Lanes<V>;
  Columns<V> mean, scale, shift;
  mean.gather(panel, channels, gradient.mean);
  if constexpr (kMask == Mask::from_x) {
    scale.gather(panel, channels, gradient.scale);
    shift.gather(panel, channels, gradient.shift);
  }
  for (std::int64_t first = 0; first < panel.rows; first += kBlockRows) {
    const std::int64_t last = first + kBlockRows < panel.rows ? first + kBlockRows : panel.rows;
    V g_sum[kMaxPieces<V>] = {}, gx_sum[kMaxPieces<V>] = {};
    for (std::int64_t r = first; r < last; ++r) {
      const std::int64_t row = panel.offset + r * panel.stride;
      for_each_piece<V>(panel, [&](int k) {
        const std::int64_t at = row + k * L::kWidth;
        const V centred = L::load(gradient.x + at) - mean.at[k];
        const V g = gradient_at<V, kSecond, kMask>(gradient, at, centred, scale.at[k], shift.at[k]);
        if constexpr (kWrite) L::store(g_out + at, g);
        g_sum[k] += g;
        gx_sum[k] += g * centred;
      });
    }
    float g_columns[kPanelColumns] = {}, gx_columns[kPanelColumns] = {};
    for_each_piece<V>(panel, [&](int k) {
      L::store(g_columns + k * L::kWidth, g_sum[k]);
      L::store(gx_columns + k * L::kWidth, gx_sum[k]);
    });
    std::int64_t channel = panel.channel;
    for (int i = 0; i < panel.width; ++i) {
      sum_g[channel] += static_cast<double>(g_columns[i]);
      sum_gx[channel] += static_cast<double>(gx_columns[i]);
      if (++channel == channels) channel = 0;
    }
  }
}

template <typename V, bool kSecond, Mask kMask, typename T>
inline void backward_apply_panel(const Panel& panel, std::int64_t channels, const Rows<T>& gradient,
                                 const float* a, const float* b, const float* d, T* dx) {
  using L = Lanes<V>;
  Columns<V> mean, scale, shift, factor, slope, constant;
  mean.gather(panel, channels, gradient.mean);
  factor.gather(panel, channels, a);
  slope.gather(panel, channels, b);
  constant.gather(panel, channels, d);
  if constexpr (kMask == Mask::from_x) {
    scale.gather(panel, channels, gradient.scale);
    shift.gather(panel, channels, gradient.shift);
  }
  for (std::int64_t r = 0; r < panel.rows; ++r) {
    const std::int64_t row = panel.offset + r * panel.stride;
    for_each_piece<V>(panel, [&](int k) {
      const std::int64_t at = row + k * L::kWidth;
      const V centred = L::load(gradient.x + at) - mean.at[k];
      const V g = gradient_at<V, kSecond, kMask>(gradient, at, centred, scale.at[k], shift.at[k]);
      L::store(dx + at, factor.at[k] * g + slope.at[k] * centred + constant.at[k]);
    });
  }
}

template <auto kValue>
struct Constant {
  static constexpr auto value = kValue;
};

/// with_flag() and with_mask() call f with the boolean or the mask as a type.
template <typename F>
inline void with_flag(bool flag, const F& f) {
  flag ? f(Constant<true>{}) : f(Constant<false>{});
}
template <typename F>
inline void with_mask(const NormKernels::Gradient& gradient, const F& f) {
  if (gradient.mask_from_x)
    f(Constant<Mask::from_x>{});
  else if (gradient.y != nullptr)
    f(Constant<Mask::from_y>{});
  else
    f(Constant<Mask::none>{});
}

/// Sets one channel of NormKernels::Coefficients.
inline void set_channel(const NormKernels::Coefficients& out, std::int64_t c, double mean, double variance,
                        double epsilon, const float* gamma, const float* beta) {
  const double scale = gamma == nullptr ? 1.0 : static_cast<double>(gamma[c]);
  const double shift = beta == nullptr ? 0.0 : static_cast<double>(beta[c]);
  const double inverse_std = 1.0 / __builtin_sqrt(variance + epsilon);
  const float rounded_mean = static_cast<float>(mean);
  const double rest = mean - static_cast<double>(rounded_mean);
  out.precise_inverse_std[c] = inverse_std;
  out.mean[c] = rounded_mean;
  out.mean_rest[c] = rest;
  out.inverse_std[c] = static_cast<float>(inverse_std);
  out.scale[c] = static_cast<float>(scale * inverse_std);
  out.shift[c] = static_cast<float>(shift - rest * scale * inverse_std);
}

class Norm final : public NormKernels {
 public:
  void moments(const Lane&, std::int64_t rows, std::int64_t channels, ConstData x,
               double* leaf) const override {
    with_type(x.type(), [&]<typename T>(T) { find_moments(rows, channels, x.as<T>(), leaf); });
  }

  void merge_moments(const Lane&, std::int64_t channels, const TreeMerges& tree, double* in,
                     double* out) const override {
    run_merges(tree, 1 + 2 * channels, in, out,
               [channels](double* into, const double* right) { add_moments(channels, into, right); });
  }

  void merge_sums(const Lane&, std::int64_t width, const TreeMerges& tree, double* in,
                  double* out) const override {
    run_merges(tree, width, in, out, [width](double* into, const double* right) {
      for (std::int64_t i = 0; i < width; ++i) into[i] += right[i];
    });
  }

  void coefficients(const Lane&, std::int64_t channels, const double* total, double epsilon,
                    const float* gamma, const float* beta, Coefficients out) const override {
    const double count = total[0] > 1.0 ? total[0] : 1.0;
    *out.count = count;
    for (std::int64_t c = 0; c < channels; ++c)
      set_channel(out, c, total[1 + c], total[1 + channels + c] / count, epsilon, gamma, beta);
  }

  void inference_coefficients(const Lane&, std::int64_t channels, const float* moving_mean,
                              const float* moving_variance, double epsilon, const float* gamma,
                              const float* beta, Coefficients out) const override {
    for (std::int64_t c = 0; c < channels; ++c)
      set_channel(out, c, static_cast<double>(moving_mean[c]), static_cast<double>(moving_variance[c]),
                  epsilon, gamma, beta);
  }

  void moving_average(const Lane&, std::int64_t channels, const double* total, double momentum,
                      float* moving_mean, float* moving_variance) const override {
    if (total[0] <= 1) return;
    const double degrees = total[0] - 1.0;
    for (std::int64_t c = 0; c < channels; ++c) {
      const double unbiased = total[1 + channels + c] / degrees;
      moving_mean[c] = static_cast<float>(momentum * static_cast<double>(moving_mean[c]) +
                                          (1.0 - momentum) * total[1 + c]);
      moving_variance[c] = static_cast<float>(momentum * static_cast<double>(moving_variance[c]) +
                                              (1.0 - momentum) * unbiased);
    }
  }

  void normalize(const Lane&, std::int64_t rows, std::int64_t channels, ConstData x, const float* mean,
                 const float* scale, const float* shift, ConstData residual, bool relu,
                 Data y) const override {
    with_type(x.type(), [&]<typename T>(T) {
      const T *from = x.as<T>(), *added = residual.as<T>();
      T* to = y.as<T>();
      with_flag(residual != nullptr, [&]<typename R>(R) {
        with_flag(relu, [&]<typename A>(A) {
          for_each_panel(rows, channels, [&]<typename V>(const Panel& panel, V) {
            normalize_panel<V, R::value, A::value>(panel, channels, from, mean, scale, shift, added, to);
          });
        });
      });
    });
  }

  void backward_sums(const Lane&, std::int64_t rows, std::int64_t channels, const Gradient& gradient,
                     Data g_out, double* sum_g, double* sum_gx) const override {
    for (std::int64_t c = 0; c < channels; ++c) sum_g[c] = sum_gx[c] = 0.0;
    with_type(gradient.x.type(), [&]<typename T>(T) {
      const Rows<T> typed(gradient);
      T* g = g_out.as<T>();
      with_flag(gradient.dy2 != nullptr, [&]<typename S>(S) {
        with_flag(g_out != nullptr, [&]<typename W>(W) {
          with_mask(gradient, [&]<typename M>(M) {
            for_each_panel(rows, channels, [&]<typename V>(const Panel& panel, V) {
              backward_sums_panel<V, S::value, M::value, W::value>(panel, channels, typed, g, sum_g, sum_gx);
            });
          });
        });
      });
    });
    for (std::int64_t c = 0; c < channels; ++c) {
      const double rest = gradient.mean_rest == nullptr ? 0.0 : gradient.mean_rest[c];
      sum_gx[c] = (sum_gx[c] - rest * sum_g[c]) * static_cast<double>(gradient.inverse_std[c]);
    }
  }

  void gradient_coefficients(const Lane&, std::int64_t channels, const double* sums, const float* gamma,
                             Coefficients in, float* a, float* b, float* d) const override {
    const double count = *in.count;
    for (std::int64_t c = 0; c < channels; ++c) {
      const double inverse_std = in.precise_inverse_std[c];
      const double factor = (gamma == nullptr ? 1.0 : static_cast<double>(gamma[c])) * inverse_std;
      const double slope = -factor * sums[channels + c] / count * inverse_std;
      a[c] = static_cast<float>(factor);
      b[c] = static_cast<float>(slope);
      d[c] = static_cast<float>(-factor * sums[c] / count - slope * in.mean_rest[c]);
    }
  }

  void to_float(const Lane&, std::int64_t count, const double* from, float* to) const override {
    for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(from[i]);
  }

  void backward_apply(const Lane&, std::int64_t rows, std::int64_t channels, const Gradient& gradient,
                      const float* a, const float* b, const float* d, Data dx) const override {
    with_type(gradient.x.type(), [&]<typename T>(T) {
      const Rows<T> typed(gradient);
      T* to = dx.as<T>();
      with_flag(gradient.dy2 != nullptr, [&]<typename S>(S) {
        with_mask(gradient, [&]<typename M>(M) {
          for_each_panel(rows, channels, [&]<typename V>(const Panel& panel, V) {
            backward_apply_panel<V, S::value, M::value>(panel, channels, typed, a, b, d, to);
          });
        });
      });
    });
  }
};

}  // namespace

const NormKernels& norm_kernels() {
  static const Norm kernels;
  return kernels;
}

}  // namespace lockstep::LOCKSTEP_ISA
