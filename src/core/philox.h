// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Philox4x32-10, a counter-based random number generator: Salmon, Moraes, Dror, Shaw, "Parallel random
// numbers: as easy as 1, 2, 3", SC'11. A random number is a function of (seed, purpose, step, sample,
// element). It therefore does not depend on ranks or threads, and checkpoints store no generator state.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>

namespace lockstep {

using PhiloxBlock = std::array<std::uint32_t, 4>;

/// Ten rounds over `counter` with a 64-bit key. Returns four independent 32-bit numbers.
constexpr PhiloxBlock philox4x32(PhiloxBlock counter, std::uint32_t key0, std::uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = std::uint64_t{0xD2511F53U} * counter[0];
    const std::uint64_t product1 = std::uint64_t{0xCD9E8D57U} * counter[2];
    counter = {
        static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key0, static_cast<std::uint32_t>(product1),
        static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key1, static_cast<std::uint32_t>(product0)};
    key0 += 0x9E3779B9U;
    key1 += 0xBB67AE85U;
  }
  return counter;
}

/// The stream id of a name ("conv1/kernel", "dropout1"): 32-bit FNV-1a. Initial values depend on it: do not
/// change it.
constexpr std::uint32_t philox_purpose(std::string_view name) {
  std::uint32_t hash = 2166136261U;
  for (char c : name) hash = (hash ^ static_cast<std::uint8_t>(c)) * 16777619U;
  return hash;
}

/// Numbers `4*block .. 4*block+3` of the stream of (seed, purpose, step, sample).
constexpr PhiloxBlock philox_words(std::uint64_t seed, std::uint32_t purpose, std::uint32_t step,
                                   std::uint32_t sample, std::uint32_t block) {
  return philox4x32({block, sample, step, purpose}, static_cast<std::uint32_t>(seed),
                    static_cast<std::uint32_t>(seed >> 32));
}

/// Uniform in [0, 1), a multiple of 2^-24.
constexpr float philox_uniform(std::uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24F; }

/// Two independent standard normal numbers (Box and Muller 1958), computed in double.
inline std::array<double, 2> philox_normal(std::uint32_t word0, std::uint32_t word1) {
  const double u = (static_cast<double>(word0) + 1.0) * 0x1p-32;  // in (0, 1]
  const double angle = 6.283185307179586476925286766559 * static_cast<double>(word1) * 0x1p-32;
  const double radius = std::sqrt(-2.0 * std::log(u));
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

}  // namespace lockstep
