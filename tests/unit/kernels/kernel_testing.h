// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Shared parts of the kernel tests: aligned memory, reproducible numbers, lanes, the instruction-set levels
// of this machine, and comparisons that fail for NaN.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "core/buffer.h"
#include "core/philox.h"
#include "kernels/isa.h"
#include "kernels/primitives.h"
#include "support/reference_kernels.h"

namespace lockstep {

using reference::Values;

/// Half the distance from 1 to the next float32: the largest relative error of one rounding.
inline constexpr double kRounding = 0x1p-24;

/// Floats in 64-byte aligned memory, shifted by `shift` elements.
class Floats {
 public:
  explicit Floats(std::int64_t count, int shift = 0)
      : count_(static_cast<std::size_t>(count)),
        shift_(static_cast<std::size_t>(shift)),
        buffer_(cpu_device(), (count_ + shift_ + 1) * sizeof(float)) {}
  Floats(const Values& values, int shift) : Floats(static_cast<std::int64_t>(values.size()), shift) {
    for (std::size_t i = 0; i < count_; ++i) data()[i] = static_cast<float>(values[i]);
  }
  explicit Floats(const Values& values) : Floats(values, 0) {}
  float* data() const { return static_cast<float*>(buffer_.data()) + shift_; }
  std::size_t size() const { return count_; }
  float& operator[](std::size_t i) const { return data()[i]; }
  Values values() const { return {data(), data() + count_}; }
  Floats copy(int shift = 0) const { return Floats(values(), shift); }

 private:
  std::size_t count_, shift_;
  Buffer buffer_;
};

inline bool same_bits(const Floats& a, const Floats& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// Uniform float32 numbers in [low, high), determined by `stream`.
inline Values random_values(std::int64_t count, std::uint32_t stream, double low = -1.0, double high = 1.0) {
  Values values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const PhiloxBlock words = philox_words(7, stream, 0, 0, static_cast<std::uint32_t>(i));
    values[i] = static_cast<float>(low + (high - low) * static_cast<double>(philox_uniform(words[0])));
  }
  return values;
}

inline Values absolute(Values values) {
  for (double& value : values) value = std::abs(value);
  return values;
}

/// Every |actual - expected| <= relative * |magnitude| + absolute; NaN fails.
inline void expect_close(const Values& actual, const Values& expected, const Values& magnitude,
                         double relative, double absolute, const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  ASSERT_EQ(magnitude.size(), expected.size()) << what;
  int reported = 0;
  for (std::size_t i = 0; i < actual.size() && reported < 5; ++i) {
    const double tolerance = relative * std::abs(magnitude[i]) + absolute;
    if (std::abs(actual[i] - expected[i]) <= tolerance) continue;
    ADD_FAILURE() << what << ": element " << i << " is " << actual[i] << ", not " << expected[i]
                  << " (tolerance " << tolerance << ")";
    ++reported;
  }
}

/// A lane with its own scratch.
class TestLane {
 public:
  explicit TestLane(std::size_t scratch_bytes = 0, int index = 0)
      : scratch_(cpu_device(), scratch_bytes + 64) {
    lane_.index = index;
    lane_.scratch = scratch_.data();
    lane_.scratch_bytes = scratch_bytes;
  }
  operator const Lane&() const { return lane_; }  // NOLINT(google-explicit-constructor): acts as a lane

 private:
  Buffer scratch_;
  Lane lane_;
};

/// The kernels of one instruction-set level.
struct Level {
  std::string name;
  const ElementwiseKernels& elementwise;
  const NormKernels& norm;
  const LossKernels& loss;
  const UpdateKernels& update;
  const ActivationKernels& activation;
  const BroadcastKernels& broadcast;
  const GroupNormKernels& group_norm;
  const LayoutKernels& layout;
  const EmbeddingKernels& embedding;
  const RecurrentKernels& recurrent;
  const AttentionKernels& attention;
  const SamplingKernels& sampling;
  const SpatialKernels& spatial;
  const ClipKernels& clip;
  const DistributionKernels& distribution;
};

/// The levels that this processor can run, baseline first.
inline std::vector<Level> levels() {
#define LOCKSTEP_LEVEL(level)    \
  {#level,                       \
   level::elementwise_kernels(), \
   level::norm_kernels(),        \
   level::loss_kernels(),        \
   level::update_kernels(),      \
   level::activation_kernels(),  \
   level::broadcast_kernels(),   \
   level::group_norm_kernels(),  \
   level::layout_kernels(),      \
   level::embedding_kernels(),   \
   level::recurrent_kernels(),   \
   level::attention_kernels(),   \
   level::sampling_kernels(),    \
   level::spatial_kernels(),     \
   level::clip_kernels(),        \
   level::distribution_kernels()}
  std::vector<Level> list{LOCKSTEP_LEVEL(baseline)};
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2"))
    list.push_back(LOCKSTEP_LEVEL(avx2));
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    list.push_back(LOCKSTEP_LEVEL(avx512));
#endif
#undef LOCKSTEP_LEVEL
  return list;
}

}  // namespace lockstep
