// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Element-wise kernels and row sums on the CPU, per instruction-set level (isa.h). The compiler vectorises
// the plain loops; every element goes through the same operations at any position.
#include "kernels/elementwise.h"

#if defined(__x86_64__)
#include <immintrin.h>  // its functions are always inlined, never emitted
#endif

#include "kernels/box_muller.h"
#include "kernels/isa.h"
#include "kernels/vec_sums.h"

namespace lockstep::LOCKSTEP_ISA {
namespace {

/// NaN stays NaN.
template <typename V>
inline V positive_part(V value) {
  return value < 0.0F ? V{} : value;
}

/// What bfloat16 keeps of a number (core/half.h).
inline float rounded(float value) { return to_float(from_float<BFloat16>(value)); }
inline Vec rounded(Vec value) {
  const Bits bits = reinterpret_cast<Bits>(value);
  const Bits even = bits + 0x7FFFU + ((bits >> 16) & 1U);
  const Bits kept = (bits & 0x7FFFFFFFU) > 0x7F800000U ? bits | 0x400000U : even;
  return reinterpret_cast<Vec>(kept & 0xFFFF0000U);
}

using Wide = std::uint64_t __attribute__((vector_size(kLanes * sizeof(float))));
using UnalignedWide =
    std::uint64_t __attribute__((vector_size(kLanes * sizeof(float)), aligned(8), may_alias));
constexpr int kWide = kLanes / 2;  ///< 64-bit elements of a register

using UnalignedWords =
    std::uint32_t __attribute__((vector_size(kLanes * sizeof(float)), aligned(4), may_alias));
using Integers =
    std::int32_t __attribute__((vector_size(kLanes * sizeof(float))));  // converts to float in one step

/// Products of the low 32 bits of each element, 64 bits each.
inline Wide multiply_low_halves(Wide a, Wide b) {
#if defined(__AVX512F__)
  return reinterpret_cast<Wide>(
      _mm512_maskz_mul_epu32(0xFF, reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
#elif defined(__AVX2__)
  return reinterpret_cast<Wide>(_mm256_mul_epu32(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
#elif defined(__SSE2__)
  return reinterpret_cast<Wide>(_mm_mul_epu32(reinterpret_cast<__m128i>(a), reinterpret_cast<__m128i>(b)));
#else
  return (a & 0xFFFFFFFFU) * (b & 0xFFFFFFFFU);
#endif
}

/// Philox4x32-10 (core/philox.h) for kBlocks consecutive blocks at once; words[4 * i + k] is word k of block
/// i. A word is the low half of a 64-bit element; the upper half is never read.
constexpr int kBlocks = 16;
constexpr std::uint64_t kOrdinals[kBlocks] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
inline void philox(std::uint64_t seed, std::uint32_t purpose, std::uint32_t step, std::uint32_t sample,
                   std::uint32_t first_block, std::uint32_t* words) {
  const Wide zero = {};
  for (int first = 0; first < kBlocks; first += 2 * kWide) {  // two registers at a time, to hide latency
    Wide c0[2], c1[2], c2[2], c3[2];
    for (int k = 0; k < 2; ++k) {
      c0[k] = *reinterpret_cast<const UnalignedWide*>(kOrdinals + first + k * kWide) + first_block;
      c1[k] = zero + sample;
      c2[k] = zero + step;
      c3[k] = zero + purpose;
    }
    std::uint32_t key0 = static_cast<std::uint32_t>(seed), key1 = static_cast<std::uint32_t>(seed >> 32);
    for (int round = 0; round < 10; ++round) {
#pragma GCC unroll 2
      for (int k = 0; k < 2; ++k) {
        const Wide product0 = multiply_low_halves(c0[k], zero + 0xD2511F53U);
        const Wide product1 = multiply_low_halves(c2[k], zero + 0xCD9E8D57U);
        c0[k] = (product1 >> 32) ^ c1[k] ^ key0;
        c1[k] = product1;
        c2[k] = (product0 >> 32) ^ c3[k] ^ key1;
        c3[k] = product0;
      }
      key0 += 0x9E3779B9U;
      key1 += 0xBB67AE85U;
    }
    for (int k = 0; k < 2; ++k) {
      // Words 0 and 1 of a block form one element, words 2 and 3 another.
      const Wide low = (c0[k] & 0xFFFFFFFFU) | (c1[k] << 32), high = (c2[k] & 0xFFFFFFFFU) | (c3[k] << 32);
      std::uint64_t pairs[2][kWide];
      *reinterpret_cast<UnalignedWide*>(pairs[0]) = low;
      *reinterpret_cast<UnalignedWide*>(pairs[1]) = high;
      for (int i = 0; i < kWide; ++i) {
        std::uint32_t* block = words + 4 * (first + k * kWide + i);
        block[0] = static_cast<std::uint32_t>(pairs[0][i]);
        block[1] = static_cast<std::uint32_t>(pairs[0][i] >> 32);
        block[2] = static_cast<std::uint32_t>(pairs[1][i]);
        block[3] = static_cast<std::uint32_t>(pairs[1][i] >> 32);
      }
    }
  }
}

/// Calls body(element, count, words) for the elements of n samples, for up to 4 kBlocks elements of a sample
/// at a time.
template <typename Body>
inline void for_each_draw(std::int64_t n, std::int64_t features, std::uint64_t seed, std::uint32_t purpose,
                          std::uint32_t step, std::uint32_t first_sample, const Body& body) {
  constexpr std::int64_t kElements = 4 * kBlocks;
  std::uint32_t words[kElements];
  for (std::int64_t s = 0; s < n; ++s)
    for (std::int64_t e = 0; e < features; e += kElements) {
      philox(seed, purpose, step, first_sample + static_cast<std::uint32_t>(s),
             static_cast<std::uint32_t>(e / 4), words);
      body(s * features + e, features - e < kElements ? features - e : kElements, words);
    }
}

class Elementwise final : public ElementwiseKernels {
 public:
  void convert(const Lane&, std::int64_t count, ConstData from, Data to) const override {
    with_type(from.type(), [&]<typename From>(From) {
      with_type(to.type(), [&]<typename To>(To) {
        const From* const x = from.as<From>();
        To* const y = to.as<To>();
        for_each_vector(
            count, [=]<typename V>(std::int64_t i, V) { Lanes<V>::store(y + i, Lanes<V>::load(x + i)); });
      });
    });
  }

  void zero(const Lane&, std::int64_t count, Data y) const override {
    with_type(y.type(), [&]<typename T>(T nothing) {
      T* const to = y.as<T>();
      for (std::int64_t i = 0; i < count; ++i) to[i] = nothing;
    });
  }

  void accumulate(const Lane& lane, std::int64_t count, Data into, ConstData from) const override {
    add(lane, count, into, from, into, false);
  }

  void accumulate_rounded(const Lane&, std::int64_t count, float* into, ConstData from,
                          bool total) const override {
    const auto add = [=]<typename T>(const T* other) {
      const auto sum = [=]<typename V>(std::int64_t i, V) {
        return rounded(Lanes<V>::load(into + i)) + rounded(Lanes<V>::load(other + i));
      };
      if (total)
        for_each_vector(count, [=]<typename V>(std::int64_t i, V tag) {
          Lanes<V>::store(into + i, rounded(sum(i, tag)));
        });
      else
        for_each_vector(count,
                        [=]<typename V>(std::int64_t i, V tag) { Lanes<V>::store(into + i, sum(i, tag)); });
    };
    from.type() == DType::bf16 ? add(from.as<BFloat16>()) : add(from.f32());
  }

  void round_to_bfloat16(const Lane&, std::int64_t count, float* values) const override {
    for_each_vector(count, [=]<typename V>(std::int64_t i, V) {
      Lanes<V>::store(values + i, rounded(Lanes<V>::load(values + i)));
    });
  }

  void add(const Lane&, std::int64_t count, ConstData a, ConstData b, Data y, bool relu) const override {
    with_type(y.type(), [&]<typename T>(T) {
      const T *const left = a.as<T>(), *const right = b.as<T>();
      T* const to = y.as<T>();
      const auto sum = [=]<typename V>(std::int64_t i, V) {
        return Lanes<V>::load(left + i) + Lanes<V>::load(right + i);
      };
      if (relu)
        for_each_vector(count, [=]<typename V>(std::int64_t i, V tag) {
          Lanes<V>::store(to + i, positive_part(sum(i, tag)));
        });
      else
        for_each_vector(count,
                        [=]<typename V>(std::int64_t i, V tag) { Lanes<V>::store(to + i, sum(i, tag)); });
    });
  }

  void add_bias(const Lane&, std::int64_t rows, std::int64_t channels, const float* bias, Data y,
                bool relu) const override {
    with_type(y.type(), [&]<typename T>(T) {
      T* const to = y.as<T>();
      if (relu)
        add_to_rows<true>(rows, channels, bias, to);
      else
        add_to_rows<false>(rows, channels, bias, to);
    });
  }

  void scale(const Lane&, std::int64_t count, float a, ConstData x, Data y) const override {
    with_type(y.type(), [&]<typename T>(T) {
      const T* const from = x.as<T>();
      T* const to = y.as<T>();
      for_each_vector(count, [=]<typename V>(std::int64_t i, V) {
        Lanes<V>::store(to + i, a * Lanes<V>::load(from + i));
      });
    });
  }

  void blend(const Lane&, std::int64_t count, float* into, const float* from, float weight) const override {
    for (std::int64_t i = 0; i < count; ++i) into[i] += weight * (from[i] - into[i]);
  }

  void exchange(const Lane&, std::int64_t count, float* a, float* b) const override {
    for (std::int64_t i = 0; i < count; ++i) {
      const float value = a[i];
      a[i] = b[i];
      b[i] = value;
    }
  }

  void relu(const Lane&, std::int64_t count, ConstData x, Data y) const override {
    with_type(y.type(), [&]<typename T>(T) {
      const T* const from = x.as<T>();
      T* const to = y.as<T>();
      for_each_vector(count, [=]<typename V>(std::int64_t i, V) {
        Lanes<V>::store(to + i, positive_part(Lanes<V>::load(from + i)));
      });
    });
  }

  void relu_backward(const Lane&, std::int64_t count, ConstData dy, ConstData y, Data dx) const override {
    with_type(dx.type(), [&]<typename T>(T) {
      const T *const gradient = dy.as<T>(), *const output = y.as<T>();
      T* const to = dx.as<T>();
      for_each_vector(count, [=]<typename V>(std::int64_t i, V zero) {
        Lanes<V>::store(to + i, Lanes<V>::load(output + i) > zero ? Lanes<V>::load(gradient + i) : zero);
      });
    });
  }

  void mask_and_sum_rows(const Lane&, std::int64_t rows, std::int64_t channels, ConstData dy, ConstData y,
                         Data g, float* column_sums) const override {
    with_type(dy.type(), [&]<typename T>(T) {
      mask_and_sum(rows, channels, dy.as<T>(), y.as<T>(), g.as<T>(), column_sums);
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
    if (lane.step_word != nullptr) step = *lane.step_word;
    const float kept = 1.0F / (1.0F - rate);
    with_type(y.type(), [&]<typename T>(T) {
      const T* const all = x.as<T>();
      T* const result = y.as<T>();
      for_each_draw(
          n, features, seed, purpose, step, first_sample,
          [&](std::int64_t at, std::int64_t count, const std::uint32_t* words) {
            const T* from = all + at;
            T* to = result + at;
            std::int64_t i = 0;
            for (; i + kLanes <= count; i += kLanes) {
              const auto bits =
                  reinterpret_cast<Integers>(*reinterpret_cast<const UnalignedWords*>(words + i) >> 8);
              const Vec uniform = __builtin_convertvector(bits, Vec) * 0x1p-24F;
              Lanes<Vec>::store(to + i, uniform >= rate ? Lanes<Vec>::load(from + i) * kept : Vec{});
            }
            for (; i < count; ++i) {
              const float uniform = static_cast<float>(words[i] >> 8) * 0x1p-24F;
              to[i] = from_float<T>(uniform >= rate ? to_float(from[i]) * kept : 0.0F);
            }
          });
    });
  }

  void gaussian_noise(const Lane& lane, std::int64_t n, std::int64_t features, ConstData x, float stddev,
                      std::uint64_t seed, std::uint32_t purpose, std::uint32_t step,
                      std::uint32_t first_sample, Data y) const override {
    if (lane.step_word != nullptr) step = *lane.step_word;
    with_type(y.type(), [&]<typename T>(T) {
      const T* const all = x.as<T>();
      T* const result = y.as<T>();
      for_each_draw(n, features, seed, purpose, step, first_sample,
                    [&](std::int64_t at, std::int64_t count, const std::uint32_t* words) {
                      const T* from = all + at;
                      T* to = result + at;
                      const auto add = [&](std::int64_t i, double z) {
                        to[i] = from_float<T>(to_float(from[i]) + stddev * static_cast<float>(z));
                      };
                      for (std::int64_t i = 0; i < count; i += 2) {
                        const double radius = __builtin_sqrt(squared_radius(words[i]));
                        const SineCosine angle = sine_cosine(words[i + 1]);
                        add(i, radius * angle.cosine);
                        if (i + 1 < count) add(i + 1, radius * angle.sine);
                      }
                    });
    });
  }

 private:
  template <bool kRelu, typename T>
  static void add_to_rows(std::int64_t rows, std::int64_t channels, const float* bias, T* y) {
    for_each_panel(rows, channels, [=]<typename V>(const Panel& panel, V) {
      float added[kPanelColumns];
      gather_columns(panel, channels, bias, added);
      for (std::int64_t r = 0; r < panel.rows; ++r) {
        T* const row = y + panel.offset + r * panel.stride;
        for_each_piece<V>(panel, [&](int k) {
          T* const at = row + k * Lanes<V>::kWidth;
          const V sum = Lanes<V>::load(at) + Lanes<V>::load(added + k * Lanes<V>::kWidth);
          Lanes<V>::store(at, kRelu ? positive_part(sum) : sum);
        });
      }
    });
  }

  template <typename T>
  static void mask_and_sum(std::int64_t rows, std::int64_t channels, const T* dy, const T* y, T* g,
                           float* column_sums) {
    const auto masked = [=]<typename V>(std::int64_t at, V zero) {
      const V value = Lanes<V>::load(dy + at);
      return Lanes<V>::load(y + at) > zero ? value : zero;
    };
    const auto written = [=]<typename V>(std::int64_t at, V value) {
      Lanes<V>::store(g + at, value);
      return value;
    };
    const auto plain = []<typename V>(const T* p, V) { return Lanes<V>::load(p); };
    if (y == nullptr && (g == nullptr || g == dy))
      sum_rows(rows, channels, 1.0, column_sums,
               [=](std::int64_t at, auto tag) { return plain(dy + at, tag); });
    else if (y == nullptr)
      sum_rows(rows, channels, 1.0, column_sums,
               [=](std::int64_t at, auto tag) { return written(at, plain(dy + at, tag)); });
    else if (g == nullptr)
      sum_rows(rows, channels, 1.0, column_sums, masked);
    else
      sum_rows(rows, channels, 1.0, column_sums,
               [=](std::int64_t at, auto tag) { return written(at, masked(at, tag)); });
  }
};

}  // namespace

const ElementwiseKernels& elementwise_kernels() {
  static const Elementwise kernels;
  return kernels;
}

}  // namespace lockstep::LOCKSTEP_ISA
