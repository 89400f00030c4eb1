// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Element-wise kernels and row sums on a GPU. Element-wise results have the CPU's bits.
#include "kernels/elementwise.h"

#include "core/philox.h"
#include "kernels/box_muller.h"
#include "kernels/cuda_columns.h"
#include "kernels/factory_cuda.h"
#include "kernels/linear_cuda.h"

namespace lockstep::cuda {
namespace {

struct Zero {
  float* y;
  template <typename V>
  __device__ void run(std::int64_t i) const {
    V::store(y + i, {});
  }
};

template <typename From, typename To>
struct Convert {
  const From* from;
  To* to;
  template <typename V>
  __device__ void run(std::int64_t i) const {
    V::store(to + i, V::load(from + i));
  }
};

template <bool kRelu, typename T = float>
struct Add {
  const T* a;
  const T* b;
  T* y;
  template <typename V>
  __device__ void run(std::int64_t i) const {
    auto value = V::load(a + i);
    const auto other = V::load(b + i);
    for (int k = 0; k < V::kWidth; ++k) {
      value.at[k] += other.at[k];
      if (kRelu) value.at[k] = positive_part(value.at[k]);
    }
    V::store(y + i, value);
  }
};

struct Scale {
  float a;
  const float* x;
  float* y;
  template <typename V>
  __device__ void run(std::int64_t i) const {
    auto value = V::load(x + i);
    for (int k = 0; k < V::kWidth; ++k) value.at[k] *= a;
    V::store(y + i, value);
  }
};

struct Relu {
  const float* x;
  float* y;
  template <typename V>
  __device__ void run(std::int64_t i) const {
    auto value = V::load(x + i);
    for (int k = 0; k < V::kWidth; ++k) value.at[k] = positive_part(value.at[k]);
    V::store(y + i, value);
  }
};

struct ReluBackward {
  const float* dy;
  const float* y;
  float* dx;
  template <typename V>
  __device__ void run(std::int64_t i) const {
    auto gradient = V::load(dy + i);
    const auto output = V::load(y + i);
    for (int k = 0; k < V::kWidth; ++k) gradient.at[k] = output.at[k] > 0.0F ? gradient.at[k] : 0.0F;
    V::store(dx + i, gradient);
  }
};

struct MaskAndSum {
  const float* dy;
  const float* y;  ///< null: no mask
  float* g;        ///< null: not written
  struct Nothing {};
  template <typename V>
  __device__ Nothing column(std::int64_t) const {
    return {};
  }
  template <typename V>
  __device__ void add(const Nothing&, std::int64_t at, Pack<V::kWidth>* sums) const {
    auto gradient = V::load(dy + at);
    if (y != nullptr) {
      const auto output = V::load(y + at);
      for (int k = 0; k < V::kWidth; ++k) gradient.at[k] = output.at[k] > 0.0F ? gradient.at[k] : 0.0F;
    }
    if (g != nullptr) V::store(g + at, gradient);
    for (int k = 0; k < V::kWidth; ++k) sums[0].at[k] += gradient.at[k];
  }
};

struct WriteSum {
  float* result;
  __device__ void operator()(std::int64_t channel, const double* sums) const {
    result[channel] = static_cast<float>(sums[0]);
  }
};

/// Rows are samples, columns are Philox blocks of four elements.
struct Dropout {
  const float* x;
  float* y;
  std::int64_t features;
  float rate, kept;
  std::uint64_t seed;
  std::uint32_t purpose, step, first_sample;
  const std::uint32_t* step_word;
  bool wide;
  struct Column {
    std::int64_t block;
    std::uint32_t step;
  };
  template <typename V>
  __device__ Column column(std::int64_t block) const {
    return {block, step_word != nullptr ? *step_word : step};
  }
  template <typename V>
  __device__ void row(const Column& column, std::int64_t, std::int64_t sample) const {
    const PhiloxBlock words =
        philox_words(seed, purpose, column.step, first_sample + static_cast<std::uint32_t>(sample),
                     static_cast<std::uint32_t>(column.block));
    const std::int64_t at = sample * features + column.block * 4;
    const std::int64_t rest = features - column.block * 4;
    if (wide) {
      Pack<4> value = Wide::load(x + at);
      for (int k = 0; k < 4; ++k)
        value.at[k] = philox_uniform(words[static_cast<std::size_t>(k)]) >= rate ? value.at[k] * kept : 0.0F;
      Wide::store(y + at, value);
    } else {
      for (int k = 0; k < 4 && k < rest; ++k)
        y[at + k] = philox_uniform(words[static_cast<std::size_t>(k)]) >= rate ? x[at + k] * kept : 0.0F;
    }
  }
};

/// Rows are samples, columns are Philox blocks of four elements.
struct GaussianNoise {
  const float* x;
  float* y;
  std::int64_t features;
  float stddev;
  std::uint64_t seed;
  std::uint32_t purpose, step, first_sample;
  const std::uint32_t* step_word;
  struct Column {
    std::int64_t block;
    std::uint32_t step;
  };
  template <typename V>
  __device__ Column column(std::int64_t block) const {
    return {block, step_word != nullptr ? *step_word : step};
  }
  template <typename V>
  __device__ void row(const Column& column, std::int64_t, std::int64_t sample) const {
    const PhiloxBlock words =
        philox_words(seed, purpose, column.step, first_sample + static_cast<std::uint32_t>(sample),
                     static_cast<std::uint32_t>(column.block));
    const std::int64_t first = column.block * 4, base = sample * features;
    for (int k = 0; k < 4 && first + k < features; k += 2) {
      const double radius = sqrt(squared_radius(words[static_cast<std::size_t>(k)]));
      const SineCosine angle = sine_cosine(words[static_cast<std::size_t>(k + 1)]);
      const std::int64_t at = base + first + k;
      y[at] = x[at] + stddev * static_cast<float>(radius * angle.cosine);
      if (first + k + 1 < features) y[at + 1] = x[at + 1] + stddev * static_cast<float>(radius * angle.sine);
    }
  }
};

class Elementwise final : public ElementwiseKernels {
 public:
  void convert(const Lane& lane, std::int64_t count, ConstData from, Data to) const override {
    with_type(from.type(), [&]<typename From>(From) {
      with_type(to.type(), [&]<typename To>(To) {
        for_each_element(lane, "convert", count, wide_aligned(from.address(), to.address()),
                         Convert<From, To>{from.as<From>(), to.as<To>()});
      });
    });
  }

  void zero(const Lane& lane, std::int64_t count, float* y) const override {
    for_each_element(lane, "zero", count, wide_aligned(y), Zero{y});
  }

  void accumulate(const Lane& lane, std::int64_t count, Data into, ConstData from) const override {
    with_type(into.type(), [&]<typename T>(T) {
      for_each_element(lane, "accumulate", count, wide_aligned(into.address(), from.address()),
                       Add<false, T>{into.as<T>(), from.as<T>(), into.as<T>()});
    });
  }

  void add(const Lane& lane, std::int64_t count, const float* a, const float* b, float* y,
           bool relu) const override {
    if (relu)
      for_each_element(lane, "add", count, wide_aligned(a, b, y), Add<true>{a, b, y});
    else
      for_each_element(lane, "add", count, wide_aligned(a, b, y), Add<false>{a, b, y});
  }

  void add_bias(const Lane& lane, std::int64_t rows, std::int64_t channels, const float* bias, float* y,
                bool relu) const override {
    cuda::add_bias(lane, rows, channels, bias, relu, y);
  }

  void scale(const Lane& lane, std::int64_t count, float a, const float* x, float* y) const override {
    for_each_element(lane, "scale", count, wide_aligned(x, y), Scale{a, x, y});
  }

  void relu(const Lane& lane, std::int64_t count, const float* x, float* y) const override {
    for_each_element(lane, "relu", count, wide_aligned(x, y), Relu{x, y});
  }

  void relu_backward(const Lane& lane, std::int64_t count, const float* dy, const float* y,
                     float* dx) const override {
    for_each_element(lane, "relu_backward", count, wide_aligned(dy, y, dx), ReluBackward{dy, y, dx});
  }

  void mask_and_sum_rows(const Lane& lane, std::int64_t rows, std::int64_t channels, const float* dy,
                         const float* y, float* g, float* column_sums) const override {
    float* written = y == nullptr && g == dy ? nullptr : g;  // what is there already
    sum_columns<1>(lane, "mask_and_sum_rows", rows, channels, wide_aligned(dy, y, g),
                   MaskAndSum{dy, y, written}, WriteSum{column_sums});
  }

  void global_average(const Lane& lane, std::int64_t n, std::int64_t positions, std::int64_t channels,
                      const float* x, float* y) const override {
    broadcast_kernels().sum(lane, {n, positions, channels}, 1.0 / static_cast<double>(positions), x, nullptr,
                            y);
  }

  void global_average_backward(const Lane& lane, std::int64_t n, std::int64_t positions,
                               std::int64_t channels, const float* dy, float* dx) const override {
    broadcast_kernels().repeat(lane, {n, positions, channels},
                               static_cast<float>(1.0 / static_cast<double>(positions)), dy, dx);
  }

  void dropout(const Lane& lane, std::int64_t n, std::int64_t features, const float* x, float rate,
               std::uint64_t seed, std::uint32_t purpose, std::uint32_t step, std::uint32_t first_sample,
               float* y) const override {
    const bool wide = features % 4 == 0 && wide_aligned(x, y);
    map_columns(lane, "dropout", n, (features + 3) / 4, false,
                Dropout{x, y, features, rate, 1.0F / (1.0F - rate), seed, purpose, step, first_sample,
                        lane.step_word, wide});
  }

  void gaussian_noise(const Lane& lane, std::int64_t n, std::int64_t features, const float* x, float stddev,
                      std::uint64_t seed, std::uint32_t purpose, std::uint32_t step,
                      std::uint32_t first_sample, float* y) const override {
    map_columns(lane, "gaussian_noise", n, (features + 3) / 4, false,
                GaussianNoise{x, y, features, stddev, seed, purpose, step, first_sample, lane.step_word});
  }
};

}  // namespace

const ElementwiseKernels& elementwise_kernels() {
  static const Elementwise kernels;
  return kernels;
}

}  // namespace lockstep::cuda
