// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/permutation.h"

#include <algorithm>
#include <bit>

#include "core/error.h"
#include "core/philox.h"

namespace lockstep {

namespace {

// Seeds determine the order of samples: do not change these constants.
constexpr std::uint32_t kRounds = 6;
/// With halves of one or two bits, some orders of few samples are much more frequent than others.
constexpr int kMinBits = 6;

std::uint64_t word(const KeyedPermutation::Key& key, std::uint64_t half, std::uint32_t round, int bits) {
  const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
  return philox_words(key.seed, key.purpose, key.step, static_cast<std::uint32_t>(half), round)[0] & mask;
}

}  // namespace

KeyedPermutation::KeyedPermutation(std::int64_t count) : count_(count) {
  LOCKSTEP_CHECK(count >= 1 && count <= std::int64_t{1} << 60, "{} numbers", count);
  const int bits =
      std::max(kMinBits, static_cast<int>(std::bit_width(static_cast<std::uint64_t>(count - 1))));
  low_bits_ = bits / 2;
  high_bits_ = bits - low_bits_;
}

std::int64_t KeyedPermutation::at(const Key& key, std::int64_t index) const {
  LOCKSTEP_DCHECK(index >= 0 && index < count_);
  auto number = static_cast<std::uint64_t>(index);
  const std::uint64_t low_mask = (std::uint64_t{1} << low_bits_) - 1;
  do {
    std::uint64_t low = number & low_mask, high = number >> low_bits_;
    for (std::uint32_t round = 0; round < kRounds; round += 2) {
      low ^= word(key, high, round, low_bits_);
      high ^= word(key, low, round + 1, high_bits_);
    }
    number = high << low_bits_ | low;
  } while (number >= static_cast<std::uint64_t>(count_));
  return static_cast<std::int64_t>(number);
}

std::int64_t KeyedPermutation::index_of(const Key& key, std::int64_t number) const {
  LOCKSTEP_DCHECK(number >= 0 && number < count_);
  auto index = static_cast<std::uint64_t>(number);
  const std::uint64_t low_mask = (std::uint64_t{1} << low_bits_) - 1;
  do {
    std::uint64_t low = index & low_mask, high = index >> low_bits_;
    for (std::uint32_t round = kRounds; round > 0; round -= 2) {
      high ^= word(key, low, round - 1, high_bits_);
      low ^= word(key, high, round - 2, low_bits_);
    }
    index = high << low_bits_ | low;
  } while (index >= static_cast<std::uint64_t>(count_));
  return static_cast<std::int64_t>(index);
}

}  // namespace lockstep
