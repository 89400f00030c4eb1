// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Normalisation within a sample on the CPU, per instruction-set level (isa.h). Layer norm normalises each row
// while it is in cache. Shapes with positions use batch norm's arithmetic for one sample at a time:
// per-channel moments and sums are merged over the channels of a group.
#include "kernels/group_norm.h"

#include "kernels/isa.h"
#include "kernels/vec_sums.h"

namespace lockstep::LOCKSTEP_ISA {
namespace {

/// Computes y[j] from x[j] with body(at, tag), a register or one float at a time.
template <typename Body>
inline void map_along(std::int64_t count, const Body& body) {
  std::int64_t j = 0;
  for (; j + kLanes <= count; j += kLanes) body(j, Vec{});
  for (; j < count; ++j) body(j, 0.0F);
}

inline void round_all(std::int64_t count, const double* from, float* to) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(from[i]);
}

template <typename T>
inline float mean_of_row(std::int64_t count, const T* x) {
  // Relative to the first element, so that a row of large, similar numbers keeps their differences.
  const float first = to_float(x[0]);
  double sum = 0.0;
  sum_along<1>(count, &sum,
               [&]<typename V>(std::int64_t at, V* sums) { sums[0] += Lanes<V>::load(x + at) - first; });
  return static_cast<float>(static_cast<double>(first) + sum / static_cast<double>(count));
}

template <typename T>
void normalize_row(bool centred, std::int64_t count, const T* x, double epsilon, const float* gamma,
                   const float* beta, float* statistics, T* y) {
  const float mean = centred ? mean_of_row(count, x) : 0.0F;
  double m2 = 0.0;
  sum_along<1>(count, &m2, [&]<typename V>(std::int64_t at, V* sums) {
    const V apart = Lanes<V>::load(x + at) - mean;
    sums[0] += apart * apart;
  });
  const float inverse_std =
      static_cast<float>(1.0 / __builtin_sqrt(m2 / static_cast<double>(count) + epsilon));
  if (statistics != nullptr) {
    statistics[0] = mean;
    statistics[1] = inverse_std;
  }
  map_along(count, [&]<typename V>(std::int64_t at, V) {
    using L = Lanes<V>;
    V value = (L::load(x + at) - mean) * inverse_std;
    if (gamma != nullptr) value = value * L::load(gamma + at);
    if (beta != nullptr) value = value + L::load(beta + at);
    L::store(y + at, value);
  });
}

/// Running sums: of the current block of rows in float32, of the previous blocks in double.
struct ParameterSums {
  float *block_gamma, *block_beta;
  double *gamma, *beta;

  ParameterSums(std::int64_t count, void* scratch)
      : gamma(static_cast<double*>(scratch)), beta(gamma + count) {
    block_gamma = reinterpret_cast<float*>(beta + count);
    block_beta = block_gamma + count;
    for (std::int64_t i = 0; i < count; ++i) gamma[i] = beta[i] = 0.0;
    clear(count);
  }
  static std::size_t bytes(std::int64_t count) {
    return static_cast<std::size_t>(count) * 2 * (sizeof(float) + sizeof(double));
  }
  void clear(std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) block_gamma[i] = block_beta[i] = 0.0F;
  }
  void end_block(std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) gamma[i] += static_cast<double>(block_gamma[i]);
    for (std::int64_t i = 0; i < count; ++i) beta[i] += static_cast<double>(block_beta[i]);
    clear(count);
  }
};

/// One row's gradient, and its terms of the parameter gradients.
template <typename T>
void row_backward(bool centred, std::int64_t count, const T* x, const T* dy, const float* gamma,
                  const float* statistics, T* dx, const ParameterSums* parameters) {
  const float mean = statistics[0], inverse_std = statistics[1];
  const auto gradient_at = [&]<typename V>(std::int64_t at, V) {
    const V g = Lanes<V>::load(dy + at);
    return gamma == nullptr ? g : g * Lanes<V>::load(gamma + at);
  };
  double sums[2];
  sum_along<2>(count, sums, [&]<typename V>(std::int64_t at, V* into) {
    using L = Lanes<V>;
    const V xhat = (L::load(x + at) - mean) * inverse_std, g = gradient_at(at, V{});
    if (parameters != nullptr) {
      const V own = L::load(dy + at);
      L::store(parameters->block_gamma + at, L::load(parameters->block_gamma + at) + own * xhat);
      L::store(parameters->block_beta + at, L::load(parameters->block_beta + at) + own);
    }
    into[0] += g;
    into[1] += g * xhat;
  });
  if (dx == nullptr) return;
  const float mean_g = centred ? static_cast<float>(sums[0] / static_cast<double>(count)) : 0.0F,
              mean_gx = static_cast<float>(sums[1] / static_cast<double>(count));
  map_along(count, [&]<typename V>(std::int64_t at, V) {
    const V xhat = (Lanes<V>::load(x + at) - mean) * inverse_std;
    Lanes<V>::store(dx + at, (gradient_at(at, V{}) - mean_g - xhat * mean_gx) * inverse_std);
  });
}

/// Per-channel values of one sample, in scratch.
struct Channels {
  std::int64_t count;
  double *leaf, *sum_g, *sum_gx, *dgamma, *dbeta;
  float *mean, *inverse_std, *a, *b, *d;

  Channels(std::int64_t channels, void* scratch) : count(channels) {
    auto* next = static_cast<double*>(scratch);
    leaf = next;  // count, means, sums of squared deviations
    next += 1 + 2 * channels;
    double** const arrays[] = {&sum_g, &sum_gx, &dgamma, &dbeta};
    for (double** values : arrays) {
      *values = next;
      next += channels;
    }
    auto* floats = reinterpret_cast<float*>(next);
    float** const float_arrays[] = {&mean, &inverse_std, &a, &b, &d};
    for (float** values : float_arrays) {
      *values = floats;
      floats += channels;
    }
  }
  static std::size_t bytes(std::int64_t channels) {
    return static_cast<std::size_t>(1 + 6 * channels) * sizeof(double) +
           static_cast<std::size_t>(5 * channels) * sizeof(float);
  }
};

class GroupNorm final : public GroupNormKernels {
 public:
  std::size_t scratch_bytes(const GroupNormShape& shape) const override {
    return is_rows(shape) ? ParameterSums::bytes(shape.width) : Channels::bytes(shape.channels());
  }

  void forward(const Lane& lane, const GroupNormShape& shape, ConstData x, double epsilon, const float* gamma,
               const float* beta, float* statistics, Data y) const override {
    with_type(x.type(), [&]<typename T>(T) {
      if (is_rows(shape))
        rows_forward(shape, x.as<T>(), epsilon, gamma, beta, statistics, y.as<T>());
      else
        groups_forward(lane, shape, x.as<T>(), epsilon, gamma, beta, statistics, y.as<T>());
    });
  }

  void backward(const Lane& lane, const GroupNormShape& shape, ConstData x, ConstData dy, const float* gamma,
                const float* statistics, Data dx, float* dgamma, float* dbeta) const override {
    with_type(x.type(), [&]<typename T>(T) {
      (is_rows(shape) ? rows_backward<T> : groups_backward<T>)(lane, shape, x.as<T>(), dy.as<T>(), gamma,
                                                               statistics, dx.as<T>(), dgamma, dbeta);
    });
  }

  void l2_normalize(const Lane&, std::int64_t rows, std::int64_t channels, ConstData x, double epsilon,
                    float* kept, Data y) const override {
    with_type(x.type(), [&]<typename T>(T) {
      for (std::int64_t row = 0; row < rows; ++row) {
        const T* from = x.as<T>() + row * channels;
        T* to = y.as<T>() + row * channels;
        const double sum = sum_of_squares(from, channels);
        const float factor = static_cast<float>(1.0 / __builtin_sqrt(sum < epsilon ? epsilon : sum));
        if (kept != nullptr) {
          kept[2 * row] = factor;
          kept[2 * row + 1] = sum < epsilon ? 0.0F : 1.0F;
        }
        map_along(channels, [&]<typename V>(std::int64_t at, V) {
          Lanes<V>::store(to + at, Lanes<V>::load(from + at) * factor);
        });
      }
    });
  }

  void l2_normalize_backward(const Lane&, std::int64_t rows, std::int64_t channels, ConstData y, ConstData dy,
                             const float* kept, Data dx) const override {
    with_type(y.type(), [&]<typename T>(T) {
      for (std::int64_t row = 0; row < rows; ++row) {
        const T *out = y.as<T>() + row * channels, *gradient = dy.as<T>() + row * channels;
        T* to = dx.as<T>() + row * channels;
        double dot = 0.0;
        sum_along<1>(channels, &dot, [&]<typename V>(std::int64_t at, V* sums) {
          sums[0] += Lanes<V>::load(out + at) * Lanes<V>::load(gradient + at);
        });
        const float factor = kept[2 * row], along = static_cast<float>(dot) * kept[2 * row + 1];
        map_along(channels, [&]<typename V>(std::int64_t at, V) {
          using L = Lanes<V>;
          L::store(to + at, (L::load(gradient + at) - L::load(out + at) * along) * factor);
        });
      }
    });
  }

 private:
  static bool is_rows(const GroupNormShape& shape) { return shape.positions == 1 && shape.groups == 1; }

  /// Merges the moments of a group's channels, each over `positions` numbers.
  static void group_statistics(const GroupNormShape& shape, const Channels& k, std::int64_t group,
                               double epsilon, float* statistics) {
    const double* means = k.leaf + 1 + group * shape.width;
    const double* m2s = means + k.count;
    double mean = 0.0, m2 = 0.0;
    for (std::int64_t i = 0; i < shape.width; ++i) mean += means[i] - means[0];
    mean = means[0] + mean / static_cast<double>(shape.width);
    for (std::int64_t i = 0; i < shape.width; ++i) {
      const double delta = means[i] - mean;
      m2 += m2s[i] + delta * delta * static_cast<double>(shape.positions);
    }
    const double count = static_cast<double>(shape.positions * shape.width);
    statistics[0] = static_cast<float>(mean);
    statistics[1] = static_cast<float>(1.0 / __builtin_sqrt(m2 / count + epsilon));
  }

  template <typename T>
  static void rows_forward(const GroupNormShape& shape, const T* x, double epsilon, const float* gamma,
                           const float* beta, float* statistics, T* y) {
    for (std::int64_t row = 0; row < shape.samples; ++row)
      normalize_row(shape.centred, shape.width, x + row * shape.width, epsilon, gamma, beta,
                    statistics == nullptr ? nullptr : statistics + 2 * row, y + row * shape.width);
  }

  template <typename T>
  static void groups_forward(const Lane& lane, const GroupNormShape& shape, const T* x, double epsilon,
                             const float* gamma, const float* beta, float* statistics, T* y) {
    const std::int64_t channels = shape.channels(), step = shape.positions * channels;
    const Channels k(channels, lane.scratch);
    const NormKernels& norm = norm_kernels();
    for (std::int64_t sample = 0; sample < shape.samples; ++sample) {
      norm.moments(lane, shape.positions, channels, x + sample * step, k.leaf);
      for (std::int64_t group = 0; group < shape.groups; ++group) {
        float own[2];
        group_statistics(shape, k, group, epsilon, own);
        for (std::int64_t c = group * shape.width; c < (group + 1) * shape.width; ++c) {
          k.mean[c] = own[0];
          k.a[c] = own[1] * (gamma == nullptr ? 1.0F : gamma[c]);
          k.d[c] = beta == nullptr ? 0.0F : beta[c];
        }
        if (statistics == nullptr) continue;
        statistics[2 * (sample * shape.groups + group)] = own[0];
        statistics[2 * (sample * shape.groups + group) + 1] = own[1];
      }
      norm.normalize(lane, shape.positions, channels, x + sample * step, k.mean, k.a, k.d, nullptr, false,
                     y + sample * step);
    }
  }

  template <typename T>
  static void rows_backward(const Lane& lane, const GroupNormShape& shape, const T* x, const T* dy,
                            const float* gamma, const float* statistics, T* dx, float* dgamma, float* dbeta) {
    const std::int64_t count = shape.width;
    const bool wanted = dgamma != nullptr || dbeta != nullptr;
    ParameterSums parameters(wanted ? count : 0, lane.scratch);
    for (std::int64_t row = 0; row < shape.samples; ++row) {
      row_backward(shape.centred, count, x + row * count, dy + row * count, gamma, statistics + 2 * row,
                   dx == nullptr ? nullptr : dx + row * count, wanted ? &parameters : nullptr);
      if (wanted && (row % kBlockRows == kBlockRows - 1 || row + 1 == shape.samples))
        parameters.end_block(count);
    }
    if (dgamma != nullptr) round_all(count, parameters.gamma, dgamma);
    if (dbeta != nullptr) round_all(count, parameters.beta, dbeta);
  }

  template <typename T>
  static void groups_backward(const Lane& lane, const GroupNormShape& shape, const T* x, const T* dy,
                              const float* gamma, const float* statistics, T* dx, float* dgamma,
                              float* dbeta) {
    const std::int64_t channels = shape.channels(), step = shape.positions * channels;
    const Channels k(channels, lane.scratch);
    const NormKernels& norm = norm_kernels();
    for (std::int64_t c = 0; c < channels; ++c) k.dgamma[c] = k.dbeta[c] = 0.0;
    for (std::int64_t sample = 0; sample < shape.samples; ++sample) {
      for (std::int64_t c = 0; c < channels; ++c) {
        const float* own = statistics + 2 * (sample * shape.groups + c / shape.width);
        k.mean[c] = own[0];
        k.inverse_std[c] = own[1];
      }
      NormKernels::Gradient gradient;
      gradient.dy = dy + sample * step;
      gradient.x = x + sample * step;
      gradient.mean = k.mean;
      gradient.inverse_std = k.inverse_std;
      norm.backward_sums(lane, shape.positions, channels, gradient, nullptr, k.sum_g, k.sum_gx);
      for (std::int64_t c = 0; c < channels; ++c) k.dgamma[c] += k.sum_gx[c];
      for (std::int64_t c = 0; c < channels; ++c) k.dbeta[c] += k.sum_g[c];
      if (dx == nullptr) continue;
      for (std::int64_t group = 0; group < shape.groups; ++group) group_coefficients(shape, k, group, gamma);
      norm.backward_apply(lane, shape.positions, channels, gradient, k.a, k.b, k.d, dx + sample * step);
    }
    if (dgamma != nullptr) round_all(channels, k.dgamma, dgamma);
    if (dbeta != nullptr) round_all(channels, k.dbeta, dbeta);
  }

  /// Coefficients of dx = a g + b (x - mean) + d for the channels of a group, from their sums.
  static void group_coefficients(const GroupNormShape& shape, const Channels& k, std::int64_t group,
                                 const float* gamma) {
    const std::int64_t first = group * shape.width;
    double sum_g = 0.0, sum_gx = 0.0;
    for (std::int64_t c = first; c < first + shape.width; ++c) {
      const double weight = gamma == nullptr ? 1.0 : static_cast<double>(gamma[c]);
      sum_g += weight * k.sum_g[c];
      sum_gx += weight * k.sum_gx[c];
    }
    const double count = static_cast<double>(shape.positions * shape.width);
    const double inverse_std = static_cast<double>(k.inverse_std[first]);
    for (std::int64_t c = first; c < first + shape.width; ++c) {
      k.a[c] = static_cast<float>((gamma == nullptr ? 1.0 : static_cast<double>(gamma[c])) * inverse_std);
      k.b[c] = static_cast<float>(-inverse_std * inverse_std * sum_gx / count);
      k.d[c] = static_cast<float>(-inverse_std * sum_g / count);
    }
  }

  template <typename T>
  static double sum_of_squares(const T* x, std::int64_t count) {
    constexpr int kColumns = 16;
    double columns[kColumns] = {};
    const auto square = [x](std::int64_t at) {
      const double value = static_cast<double>(to_float(x[at]));
      return value * value;
    };
    std::int64_t j = 0;
    for (; j + kColumns <= count; j += kColumns)
      for (int i = 0; i < kColumns; ++i) columns[i] += square(j + i);
    for (int i = 0; j < count; ++i, ++j) columns[i] += square(j);
    for (int half = kColumns / 2; half > 0; half /= 2)
      for (int i = 0; i < half; ++i) columns[i] += columns[i + half];
    return columns[0];
  }
};

}  // namespace

const GroupNormKernels& group_norm_kernels() {
  static const GroupNorm kernels;
  return kernels;
}

}  // namespace lockstep::LOCKSTEP_ISA
