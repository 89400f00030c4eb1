// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Normalisation within a sample on a GPU, with a group of threads for each (sample, group). Its numbers stay
// in cache between the passes. Adjacent groups run concurrently, so they share the cache lines that narrow
// groups read. If the channels of a group are a multiple of four, a thread handles four adjacent ones at a
// time.
#include "kernels/group_norm.h"

#include "kernels/cuda_columns.h"
#include "kernels/cuda_rows.h"
#include "kernels/factory_cuda.h"
#include "kernels/layer_norm_backward_cuda.h"

namespace lockstep::cuda {
namespace {

/// The numbers of one (sample, group), by index. A piece of V::kWidth of them lies in one position.
/// kOnePosition: there is one, so they are adjacent.
template <bool kOnePosition = false>
struct Members {
  std::int64_t base, first_channel, channels, width;
  __device__ Members(const GroupNormShape& s, std::int64_t row)
      : base(kOnePosition ? row * s.width
                          : row / s.groups * s.positions * s.groups * s.width + row % s.groups * s.width),
        first_channel(s.groups == 1 ? 0 : row % s.groups * s.width),
        channels(s.groups * s.width),
        width(s.width) {}
  __device__ std::int64_t place(std::int64_t i) const {
    if constexpr (kOnePosition) return base + i;
    return channels == width ? base + i : base + position(i) * channels + (i - position(i) * width);
  }
  /// The index into gamma and beta.
  __device__ std::int64_t channel(std::int64_t i) const {
    if constexpr (kOnePosition) return first_channel + i;
    return first_channel + (i < width ? i : i - position(i) * width);
  }
  /// Uses a 32-bit division, since 64-bit divisions are slow. The caller has checked that the numbers fit.
  __device__ std::int64_t position(std::int64_t i) const {
    return static_cast<std::uint32_t>(i) / static_cast<std::uint32_t>(width);
  }
};

/// Most numbers of a thread that stay in registers, in at most 8 packs. A row that they hold is read once.
template <typename V>
constexpr int kPacksAhead = 32 / V::kWidth < 8 ? 32 / V::kWidth : 8;

template <int kGroup, bool kOnePosition, typename V, typename T>
__global__ void __launch_bounds__(kThreads)
    group_norm_kernel(std::int64_t rows, std::int64_t count, GroupNormShape s, const T* x, double epsilon,
                      const float* gamma, const float* beta, float* statistics, T* y) {
  using G = Group<kGroup>;
  constexpr int kPacks = kPacksAhead<V>;
  constexpr std::int64_t kStep = std::int64_t{kGroup} * V::kWidth;
  const bool held = count <= kPacks * kStep;
  const double inverse_count = 1.0 / static_cast<double>(count);
  for_each_row<kGroup>(rows, [&](std::int64_t row) {
    const Members<kOnePosition> members(s, row);
    typename V::template Raw<T> raw[kPacks];
    const auto for_each = [&](bool read, const auto& body) {
      for (std::int64_t first = G::thread() * V::kWidth; first < count; first += kPacks * kStep) {
        if (read) {
#pragma unroll
          for (int p = 0; p < kPacks; ++p)
            if (first + p * kStep < count) raw[p] = V::fetch(x + members.place(first + p * kStep));
        }
#pragma unroll
        for (int p = 0; p < kPacks; ++p)
          if (first + p * kStep < count) body(V::template unpack<T>(raw[p]), first + p * kStep);
      }
    };
    double sum = 0.0, m2 = 0.0;
    if (s.centred) for_each(true, [&](const auto& in, std::int64_t) { sum += sum_of(in); });
    const float mean = s.centred ? static_cast<float>(G::sum(sum) * inverse_count) : 0.0F;
    for_each(!held || !s.centred, [&](auto in, std::int64_t) {
      for (int k = 0; k < V::kWidth; ++k) {
        const float centred = in.at[k] - mean;
        in.at[k] = centred * centred;
      }
      m2 += sum_of(in);
    });
    const float inverse_std = static_cast<float>(1.0 / sqrt(G::sum(m2) * inverse_count + epsilon));
    for_each(!held, [&](auto value, std::int64_t i) {
      const std::int64_t channel = members.channel(i);
      for (int k = 0; k < V::kWidth; ++k) value.at[k] = (value.at[k] - mean) * inverse_std;
      if (gamma != nullptr) {
        const auto factor = V::load(gamma + channel);
        for (int k = 0; k < V::kWidth; ++k) value.at[k] *= factor.at[k];
      }
      if (beta != nullptr) {
        const auto offset = V::load(beta + channel);
        for (int k = 0; k < V::kWidth; ++k) value.at[k] += offset.at[k];
      }
      V::store(y + members.place(i), value);
    });
    if (G::thread() != 0 || statistics == nullptr) return;
    statistics[2 * row] = mean;
    statistics[2 * row + 1] = inverse_std;
  });
}

template <int kGroup, typename V, typename T>
__global__ void __launch_bounds__(kThreads)
    group_norm_backward_kernel(std::int64_t rows, std::int64_t count, GroupNormShape s, const T* x,
                               const T* dy, const float* gamma, const float* statistics, T* dx) {
  using G = Group<kGroup>;
  for_each_row<kGroup>(rows, [&](std::int64_t row) {
    const Members<> members(s, row);
    const float mean = statistics[2 * row], inverse_std = statistics[2 * row + 1];
    const auto gradient = [&](std::int64_t i, std::int64_t at) {
      auto own = V::load(dy + at);
      if (gamma == nullptr) return own;
      const auto factor = V::load(gamma + members.channel(i));
      for (int k = 0; k < V::kWidth; ++k) own.at[k] *= factor.at[k];
      return own;
    };
    double sum_g = 0.0, sum_gx = 0.0;
    for_each_piece<kGroup, V>(count, [&](std::int64_t i) {
      const std::int64_t at = members.place(i);
      const auto g = gradient(i, at);
      auto in = V::load(x + at);
      for (int k = 0; k < V::kWidth; ++k) in.at[k] = g.at[k] * ((in.at[k] - mean) * inverse_std);
      sum_g += sum_of(g);
      sum_gx += sum_of(in);
    });
    const float mean_g = s.centred ? static_cast<float>(G::sum(sum_g) / static_cast<double>(count)) : 0.0F;
    const float mean_gx = static_cast<float>(G::sum(sum_gx) / static_cast<double>(count));
    for_each_piece<kGroup, V>(count, [&](std::int64_t i) {
      const std::int64_t at = members.place(i);
      const auto g = gradient(i, at);
      auto value = V::load(x + at);
      for (int k = 0; k < V::kWidth; ++k) {
        const float xhat = (value.at[k] - mean) * inverse_std;
        value.at[k] = (g.at[k] - mean_g - xhat * mean_gx) * inverse_std;
      }
      V::store(dx + at, value);
    });
  });
}

/// Sums over samples and positions for the parameter gradients.
template <typename T>
struct ParameterSums {
  using Element = T;
  template <typename V>
  struct Fetched {
    typename V::template Raw<T> x, dy;
  };
  GroupNormShape s;
  const T* x;
  const T* dy;
  const float* statistics;
  template <typename V>
  __device__ std::int64_t column(std::int64_t channel) const {
    return channel;
  }
  template <typename V>
  __device__ Fetched<V> fetch(std::int64_t at) const {
    return {V::fetch(x + at), V::fetch(dy + at)};
  }
  template <typename V>
  __device__ void add(std::int64_t channel, const Fetched<V>& fetched, std::int64_t at,
                      Pack<V::kWidth>* sums) const {
    const std::int64_t sample = (at - channel) / (s.groups * s.width * s.positions);
    const auto input = V::template unpack<T>(fetched.x), gradient = V::template unpack<T>(fetched.dy);
    for (int k = 0; k < V::kWidth; ++k) {
      const float* own = statistics + 2 * (sample * s.groups + (channel + k) / s.width);
      sums[0].at[k] += gradient.at[k] * ((input.at[k] - own[0]) * own[1]);
      sums[1].at[k] += gradient.at[k];
    }
  }
};

template <int kGroup, typename V, typename T>
__global__ void __launch_bounds__(kThreads)
    l2_normalize_kernel(std::int64_t rows, std::int64_t channels, const T* x, double epsilon, float* kept,
                        T* y) {
  using G = Group<kGroup>;
  for_each_row<kGroup>(rows, [&](std::int64_t row) {
    double sum = 0.0;
    for_each_piece<kGroup, V>(channels, [&](std::int64_t j) {
      const auto in = V::load(x + row * channels + j);
      for (int k = 0; k < V::kWidth; ++k) {
        const double value = static_cast<double>(in.at[k]);
        sum += value * value;
      }
    });
    sum = G::sum(sum);
    const float factor = static_cast<float>(1.0 / sqrt(sum < epsilon ? epsilon : sum));
    for_each_piece<kGroup, V>(channels, [&](std::int64_t j) {
      auto value = V::load(x + row * channels + j);
      for (int k = 0; k < V::kWidth; ++k) value.at[k] *= factor;
      V::store(y + row * channels + j, value);
    });
    if (G::thread() != 0 || kept == nullptr) return;
    kept[2 * row] = factor;
    kept[2 * row + 1] = sum < epsilon ? 0.0F : 1.0F;
  });
}

template <int kGroup, typename V, typename T>
__global__ void __launch_bounds__(kThreads)
    l2_normalize_backward_kernel(std::int64_t rows, std::int64_t channels, const T* y, const T* dy,
                                 const float* kept, T* dx) {
  using G = Group<kGroup>;
  for_each_row<kGroup>(rows, [&](std::int64_t row) {
    double dot = 0.0;
    for_each_piece<kGroup, V>(channels, [&](std::int64_t j) {
      const auto own = V::load(y + row * channels + j), gradient = V::load(dy + row * channels + j);
      for (int k = 0; k < V::kWidth; ++k) dot += static_cast<double>(own.at[k] * gradient.at[k]);
    });
    const float along = static_cast<float>(G::sum(dot)) * kept[2 * row + 1], factor = kept[2 * row];
    for_each_piece<kGroup, V>(channels, [&](std::int64_t j) {
      const std::int64_t at = row * channels + j;
      const auto own = V::load(y + at);
      auto value = V::load(dy + at);
      for (int k = 0; k < V::kWidth; ++k) value.at[k] = (value.at[k] - own.at[k] * along) * factor;
      V::store(dx + at, value);
    });
  });
}

/// True for layer and RMS norm of widths that their own backward pass takes.
bool in_rows(const GroupNormShape& s) { return s.positions == 1 && s.groups == 1 && in_one_pass(s.width); }

class GroupNorm final : public GroupNormKernels {
 public:
  std::size_t scratch_bytes(const GroupNormShape& s) const override {
    const std::size_t bytes = in_rows(s) ? row_runs_bytes(s.samples, s.width) : 0;
    return bytes < kScratchBytes ? kScratchBytes : bytes;
  }

  void forward(const Lane& lane, const GroupNormShape& s, ConstData x, double epsilon, const float* gamma,
               const float* beta, float* statistics, Data y) const override {
    require(s.positions * s.width <= std::int64_t{UINT32_MAX}, "the group has 2^32 numbers or more");
    if (s.samples <= 0) return;
    with_type(x.type(), [&]<typename T>(T) {
      with_pieces<T>(s.width, wide_aligned(x, y) && wide_aligned(gamma, beta), [&]<typename V>(V) {
        const auto run = [&]<bool kOnePosition>() {
          launch_rows(lane, "group_norm", s.samples * s.groups, s.positions * s.width, kMaxBlocks,
                      group_norm_kernel<kWarp, kOnePosition, V, T>,
                      group_norm_kernel<kThreads, kOnePosition, V, T>, s, x.as<T>(), epsilon, gamma, beta,
                      statistics, y.as<T>());
        };
        if (s.positions == 1)
          run.template operator()<true>();
        else
          run.template operator()<false>();
      });
    });
  }

  void backward(const Lane& lane, const GroupNormShape& s, ConstData x, ConstData dy, const float* gamma,
                const float* statistics, Data dx, float* dgamma, float* dbeta) const override {
    with_type(x.type(), [&]<typename T>(T) {
      if (in_rows(s))
        return layer_norm_backward<T>(lane, wide_aligned(x, dy, dx),
                                      {.rows = s.samples,
                                       .count = static_cast<int>(s.width),
                                       .centred = s.centred,
                                       .x = x.as<T>(),
                                       .dy = dy.as<T>(),
                                       .gamma = gamma,
                                       .statistics = statistics,
                                       .dx = dx.as<T>(),
                                       .write = {dgamma, dbeta}});
      if (s.samples > 0 && dx != nullptr)
        with_pieces<T>(s.width, wide_aligned(x, dy, dx) && wide_aligned(gamma), [&]<typename V>(V) {
          launch_rows(lane, "group_norm_backward", s.samples * s.groups, s.positions * s.width, kMaxBlocks,
                      group_norm_backward_kernel<kWarp, V, T>, group_norm_backward_kernel<kThreads, V, T>, s,
                      x.as<T>(), dy.as<T>(), gamma, statistics, dx.as<T>());
        });
      if (dgamma != nullptr || dbeta != nullptr)
        sum_columns<2>(lane, "group_norm_parameters", s.samples * s.positions, s.channels(),
                       wide_aligned(x, dy), ParameterSums<T>{s, x.as<T>(), dy.as<T>(), statistics},
                       WriteParameters{dgamma, dbeta});
    });
  }

  void l2_normalize(const Lane& lane, std::int64_t rows, std::int64_t channels, ConstData x, double epsilon,
                    float* kept, Data y) const override {
    if (rows <= 0) return;
    with_type(x.type(), [&]<typename T>(T) {
      with_pieces<T>(channels, wide_aligned(x, y), [&]<typename V>(V) {
        launch_rows(lane, "l2_normalize", rows, channels, kMaxBlocks, l2_normalize_kernel<kWarp, V, T>,
                    l2_normalize_kernel<kThreads, V, T>, x.as<T>(), epsilon, kept, y.as<T>());
      });
    });
  }

  void l2_normalize_backward(const Lane& lane, std::int64_t rows, std::int64_t channels, ConstData y,
                             ConstData dy, const float* kept, Data dx) const override {
    if (rows <= 0) return;
    with_type(y.type(), [&]<typename T>(T) {
      with_pieces<T>(channels, wide_aligned(y, dy, dx), [&]<typename V>(V) {
        launch_rows(lane, "l2_normalize_backward", rows, channels, kMaxBlocks,
                    l2_normalize_backward_kernel<kWarp, V, T>, l2_normalize_backward_kernel<kThreads, V, T>,
                    y.as<T>(), dy.as<T>(), kept, dx.as<T>());
      });
    });
  }
};

}  // namespace

const GroupNormKernels& group_norm_kernels() {
  static const GroupNorm kernels;
  return kernels;
}

}  // namespace lockstep::cuda
