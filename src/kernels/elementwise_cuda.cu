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

template <typename T>
struct Zero {
  T* y;
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

template <bool kRelu, typename T>
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

template <typename T>
struct Scale {
  float a;
  const T* x;
  T* y;
  template <typename V>
  __device__ void run(std::int64_t i) const {
    auto value = V::load(x + i);
    for (int k = 0; k < V::kWidth; ++k) value.at[k] *= a;
    V::store(y + i, value);
  }
};

struct Blend {
  float* into;
  const float* from;
  float weight;
  template <typename V>
  __device__ void run(std::int64_t i) const {
    auto value = V::load(into + i);
    const auto other = V::load(from + i);
    for (int k = 0; k < V::kWidth; ++k) value.at[k] += weight * (other.at[k] - value.at[k]);
    V::store(into + i, value);
  }
};

/// What bfloat16 keeps of a number.
inline __device__ float kept(float value) { return widened(narrowed<BFloat16>(value)); }

template <bool kTotal, typename T>
struct AddRounded {
  float* into;
  const T* from;
  template <typename V>
  __device__ void run(std::int64_t i) const {
    auto value = V::load(into + i);
    const auto other = V::load(from + i);
    for (int k = 0; k < V::kWidth; ++k) {
      value.at[k] = kept(value.at[k]) + kept(other.at[k]);
      if (kTotal) value.at[k] = kept(value.at[k]);
    }
    V::store(into + i, value);
  }
};

struct Round {
  float* values;
  template <typename V>
  __device__ void run(std::int64_t i) const {
    auto value = V::load(values + i);
    for (int k = 0; k < V::kWidth; ++k) value.at[k] = kept(value.at[k]);
    V::store(values + i, value);
  }
};

struct Exchange {
  float* a;
  float* b;
  template <typename V>
  __device__ void run(std::int64_t i) const {
    const auto value = V::load(a + i);
    V::store(a + i, V::load(b + i));
    V::store(b + i, value);
  }
};

template <typename T>
struct Relu {
  const T* x;
  T* y;
  template <typename V>
  __device__ void run(std::int64_t i) const {
    auto value = V::load(x + i);
    for (int k = 0; k < V::kWidth; ++k) value.at[k] = positive_part(value.at[k]);
    V::store(y + i, value);
  }
};

template <typename T>
struct ReluBackward {
  const T* dy;
  const T* y;
  T* dx;
  template <typename V>
  __device__ void run(std::int64_t i) const {
    auto gradient = V::load(dy + i);
    const auto output = V::load(y + i);
    for (int k = 0; k < V::kWidth; ++k) gradient.at[k] = output.at[k] > 0.0F ? gradient.at[k] : 0.0F;
    V::store(dx + i, gradient);
  }
};

template <typename T>
struct MaskAndSum {
  const T* dy;
  const T* y;  ///< null: no mask
  T* g;        ///< null: not stored
  using Element = T;
  struct Nothing {};
  template <typename V>
  struct Fetched {
    typename V::template Raw<T> dy, y;
  };
  template <typename V>
  __device__ Nothing column(std::int64_t) const {
    return {};
  }
  template <typename V>
  __device__ Fetched<V> fetch(std::int64_t at) const {
    Fetched<V> fetched{V::fetch(dy + at), {}};
    if (y != nullptr) fetched.y = V::fetch(y + at);
    return fetched;
  }
  template <typename V>
  __device__ void add(const Nothing&, const Fetched<V>& fetched, std::int64_t at,
                      Pack<V::kWidth>* sums) const {
    auto gradient = V::template unpack<T>(fetched.dy);
    if (y != nullptr) {
      const auto output = V::template unpack<T>(fetched.y);
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

/// Four elements of a sample share a Philox block; `block` is a thread's first one.
struct PhiloxColumn {
  std::int64_t block;
  std::uint32_t step;
};

/// Rows are samples. Columns are elements if these are read in packs, else Philox blocks of four elements.
template <typename T>
struct Dropout {
  const T* x;
  T* y;
  std::int64_t features;
  float rate, kept;
  std::uint64_t seed;
  std::uint32_t purpose, step, first_sample;
  const std::uint32_t* step_word;
  template <typename V>
  __device__ PhiloxColumn column(std::int64_t column) const {
    return {V::kWidth == 1 ? column : column / 4, step_word != nullptr ? *step_word : step};
  }
  template <typename V>
  __device__ void row(const PhiloxColumn& column, std::int64_t, std::int64_t sample) const {
    const std::int64_t at = sample * features + column.block * 4;
    if constexpr (V::kWidth == 1) {
      const PhiloxBlock words = words_of(column.block, column.step, sample);
      for (int k = 0; k < 4 && column.block * 4 + k < features; ++k)
        y[at + k] = narrowed<T>(dropped(widened(x[at + k]), words, k));
    } else {
      auto value = V::load(x + at);
      for (int first = 0; first < V::kWidth; first += 4) {
        const PhiloxBlock words = words_of(column.block + first / 4, column.step, sample);
        for (int k = 0; k < 4; ++k) value.at[first + k] = dropped(value.at[first + k], words, k);
      }
      V::store(y + at, value);
    }
  }
  __device__ PhiloxBlock words_of(std::int64_t block, std::uint32_t at_step, std::int64_t sample) const {
    return philox_words(seed, purpose, at_step, first_sample + static_cast<std::uint32_t>(sample),
                        static_cast<std::uint32_t>(block));
  }
  __device__ float dropped(float value, const PhiloxBlock& words, int k) const {
    return philox_uniform(words[static_cast<std::size_t>(k)]) >= rate ? value * kept : 0.0F;
  }
};

/// Rows are samples, columns are Philox blocks of four elements.
template <typename T>
struct GaussianNoise {
  const T* x;
  T* y;
  std::int64_t features;
  float stddev;
  std::uint64_t seed;
  std::uint32_t purpose, step, first_sample;
  const std::uint32_t* step_word;
  template <typename V>
  __device__ PhiloxColumn column(std::int64_t block) const {
    return {block, step_word != nullptr ? *step_word : step};
  }
  template <typename V>
  __device__ void row(const PhiloxColumn& column, std::int64_t, std::int64_t sample) const {
    const PhiloxBlock words =
        philox_words(seed, purpose, column.step, first_sample + static_cast<std::uint32_t>(sample),
                     static_cast<std::uint32_t>(column.block));
    const std::int64_t first = column.block * 4, base = sample * features;
    for (int k = 0; k < 4 && first + k < features; k += 2) {
      const double radius = sqrt(squared_radius(words[static_cast<std::size_t>(k)]));
      const SineCosine angle = sine_cosine(words[static_cast<std::size_t>(k + 1)]);
      const std::int64_t at = base + first + k;
      add(at, radius * angle.cosine);
      if (first + k + 1 < features) add(at + 1, radius * angle.sine);
    }
  }
  __device__ void add(std::int64_t at, double z) const {
    y[at] = narrowed<T>(widened(x[at]) + stddev * static_cast<float>(z));
  }
};

class Elementwise final : public ElementwiseKernels {
 public:
  void convert(const Lane& lane, std::int64_t count, ConstData from, Data to) const override {
    with_type(from.type(), [&]<typename From>(From) {
      with_type(to.type(), [&]<typename To>(To) {
        using Narrowest = std::conditional_t<sizeof(From) < sizeof(To), From, To>;
        for_each_element<Narrowest>(lane, "convert", count, wide_aligned(from, to),
                                    Convert<From, To>{from.as<From>(), to.as<To>()});
      });
    });
  }

  void zero(const Lane& lane, std::int64_t count, Data y) const override {
    with_type(y.type(), [&]<typename T>(T) {
      for_each_element<T>(lane, "zero", count, wide_aligned(y), Zero<T>{y.as<T>()});
    });
  }

  void accumulate(const Lane& lane, std::int64_t count, Data into, ConstData from) const override {
    with_type(into.type(), [&]<typename T>(T) {
      for_each_element<T>(lane, "accumulate", count, wide_aligned(into, from),
                          Add<false, T>{into.as<T>(), from.as<T>(), into.as<T>()});
    });
  }

  void accumulate_rounded(const Lane& lane, std::int64_t count, float* into, ConstData from,
                          bool total) const override {
    const bool wide = wide_aligned(into) && wide_aligned(from);
    const auto add = [&]<typename T>(const T* other) {
      if (total)
        for_each_element<T>(lane, "accumulate_rounded", count, wide, AddRounded<true, T>{into, other});
      else
        for_each_element<T>(lane, "accumulate_rounded", count, wide, AddRounded<false, T>{into, other});
    };
    from.type() == DType::bf16 ? add(from.as<BFloat16>()) : add(from.f32());
  }

  void round_to_bfloat16(const Lane& lane, std::int64_t count, float* values) const override {
    for_each_element(lane, "round_to_bfloat16", count, wide_aligned(values), Round{values});
  }

  void add(const Lane& lane, std::int64_t count, ConstData a, ConstData b, Data y, bool relu) const override {
    const bool wide = wide_aligned(a, b, y);
    with_type(y.type(), [&]<typename T>(T) {
      if (relu)
        for_each_element<T>(lane, "add", count, wide, Add<true, T>{a.as<T>(), b.as<T>(), y.as<T>()});
      else
        for_each_element<T>(lane, "add", count, wide, Add<false, T>{a.as<T>(), b.as<T>(), y.as<T>()});
    });
  }

  void add_bias(const Lane& lane, std::int64_t rows, std::int64_t channels, const float* bias, Data y,
                bool relu) const override {
    cuda::add_bias(lane, rows, channels, bias, relu, y);
  }

  void scale(const Lane& lane, std::int64_t count, float a, ConstData x, Data y) const override {
    with_type(y.type(), [&]<typename T>(T) {
      for_each_element<T>(lane, "scale", count, wide_aligned(x, y), Scale<T>{a, x.as<T>(), y.as<T>()});
    });
  }

  void blend(const Lane& lane, std::int64_t count, float* into, const float* from,
             float weight) const override {
    for_each_element(lane, "blend", count, wide_aligned(into, from), Blend{into, from, weight});
  }

  void exchange(const Lane& lane, std::int64_t count, float* a, float* b) const override {
    for_each_element(lane, "exchange", count, wide_aligned(a, b), Exchange{a, b});
  }

  void relu(const Lane& lane, std::int64_t count, ConstData x, Data y) const override {
    with_type(y.type(), [&]<typename T>(T) {
      for_each_element<T>(lane, "relu", count, wide_aligned(x, y), Relu<T>{x.as<T>(), y.as<T>()});
    });
  }

  void relu_backward(const Lane& lane, std::int64_t count, ConstData dy, ConstData y,
                     Data dx) const override {
    with_type(dx.type(), [&]<typename T>(T) {
      for_each_element<T>(lane, "relu_backward", count, wide_aligned(dy, y, dx),
                          ReluBackward<T>{dy.as<T>(), y.as<T>(), dx.as<T>()});
    });
  }

  void mask_and_sum_rows(const Lane& lane, std::int64_t rows, std::int64_t channels, ConstData dy,
                         ConstData y, Data g, float* column_sums) const override {
    with_type(dy.type(), [&]<typename T>(T) {
      T* written =
          y == nullptr && g.address() == dy.address() ? nullptr : g.as<T>();  // g already holds this value
      sum_columns<1>(lane, "mask_and_sum_rows", rows, channels, wide_aligned(dy, y, g),
                     MaskAndSum<T>{dy.as<T>(), y.as<T>(), written}, WriteSum{column_sums});
    });
  }

  void global_average(const Lane& lane, std::int64_t n, std::int64_t positions, std::int64_t channels,
                      ConstData x, Data y) const override {
    broadcast_kernels().sum(lane, {n, positions, channels}, 1.0 / static_cast<double>(positions), x, nullptr,
                            y);
  }

  void global_average_backward(const Lane& lane, std::int64_t n, std::int64_t positions,
                               std::int64_t channels, ConstData dy, Data dx) const override {
    broadcast_kernels().repeat(lane, {n, positions, channels},
                               static_cast<float>(1.0 / static_cast<double>(positions)), dy, dx);
  }

  void dropout(const Lane& lane, std::int64_t n, std::int64_t features, ConstData x, float rate,
               std::uint64_t seed, std::uint32_t purpose, std::uint32_t step, std::uint32_t first_sample,
               Data y) const override {
    const bool packs = features % 4 == 0 && wide_aligned(x, y);
    with_type(y.type(), [&]<typename T>(T) {
      map_columns<T>(lane, "dropout", n, packs ? features : (features + 3) / 4, packs,
                     Dropout<T>{x.as<T>(), y.as<T>(), features, rate, 1.0F / (1.0F - rate), seed, purpose,
                                step, first_sample, lane.step_word});
    });
  }

  void gaussian_noise(const Lane& lane, std::int64_t n, std::int64_t features, ConstData x, float stddev,
                      std::uint64_t seed, std::uint32_t purpose, std::uint32_t step,
                      std::uint32_t first_sample, Data y) const override {
    with_type(y.type(), [&]<typename T>(T) {
      map_columns(lane, "gaussian_noise", n, (features + 3) / 4, false,
                  GaussianNoise<T>{x.as<T>(), y.as<T>(), features, stddev, seed, purpose, step, first_sample,
                                   lane.step_word});
    });
  }
};

}  // namespace

const ElementwiseKernels& elementwise_kernels() {
  static const Elementwise kernels;
  return kernels;
}

}  // namespace lockstep::cuda
