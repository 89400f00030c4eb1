// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/uniform_order.h"

#include <array>

#include "core/error.h"
#include "core/philox.h"

namespace lockstep {

namespace {

using Key = UniformOrder::Key;

/// The sample of philox_words(), which no round of KeyedPermutation has. Seeds determine the order of
/// samples: do not change it.
constexpr std::uint32_t kShuffleStream = 0xFFFFFFFF;

bool same(const Key& a, const Key& b) {
  return a.seed == b.seed && a.purpose == b.purpose && a.step == b.step;
}

/// An order and its inverse.
struct Shuffled {
  Key key{};
  std::int64_t count = 0;
  std::array<std::uint8_t, UniformOrder::kMostShuffled> numbers{}, indices{};

  /// From inside out: element i goes to a random place among the first i + 1.
  void shuffle(const Key& new_key, std::int64_t new_count) {
    key = new_key;
    count = new_count;
    PhiloxBlock words{};
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      if (i % words.size() == 0)
        words = philox_words(key.seed, key.purpose, key.step, kShuffleStream,
                             static_cast<std::uint32_t>(i / words.size()));
      const auto other = static_cast<std::size_t>(std::uint64_t{words[i % words.size()]} * (i + 1) >> 32);
      numbers[i] = numbers[other];
      numbers[other] = static_cast<std::uint8_t>(i);
    }
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i)
      indices[numbers[i]] = static_cast<std::uint8_t>(i);
  }
};

/// Of this thread. Who gathers a batch asks for the orders of windows or buckets in turn, so there are
/// several.
const Shuffled& shuffled(const Key& key, std::int64_t count) {
  constexpr int kKeptBits = 4;
  thread_local std::array<Shuffled, 1 << kKeptBits> kept;
  const std::uint64_t hash =
      (key.seed ^ key.purpose ^ std::uint64_t{key.step} << 32 ^ static_cast<std::uint64_t>(count) << 16) *
      0x9E3779B97F4A7C15U;
  Shuffled& place = kept[hash >> (64 - kKeptBits)];
  if (place.count != count || !same(place.key, key)) place.shuffle(key, count);
  return place;
}

}  // namespace

std::int64_t UniformOrder::at(const Key& key, std::int64_t index) const {
  LOCKSTEP_DCHECK(index >= 0 && index < count());
  if (count() > kMostShuffled) return permutation_.at(key, index);
  return shuffled(key, count()).numbers[static_cast<std::size_t>(index)];
}

std::int64_t UniformOrder::index_of(const Key& key, std::int64_t number) const {
  LOCKSTEP_DCHECK(number >= 0 && number < count());
  if (count() > kMostShuffled) return permutation_.index_of(key, number);
  return shuffled(key, count()).indices[static_cast<std::size_t>(number)];
}

}  // namespace lockstep
