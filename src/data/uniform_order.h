// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The order of an epoch: a permutation of the numbers below `count`, chosen by a key, without state.
//
// Up to 256 numbers, all orders are equally likely: the shuffle of Fisher and Yates (Knuth, TAOCP 2, section
// 3.4.2, algorithm P) with Philox numbers. A thread computes it once per key, and keeps the last few. More
// numbers have the order of KeyedPermutation. Of few numbers its orders are not alike: at 64, a number
// follows another one up to 4 % more often, and no order is odd. At 257 nothing of that can be measured.
//
// What says which samples are held out, or belong to a part, keeps KeyedPermutation, and never changes.
#pragma once

#include <cstdint>

#include "data/permutation.h"

namespace lockstep {

class UniformOrder {
 public:
  using Key = KeyedPermutation::Key;

  /// An order of 1 to 2^60 numbers.
  explicit UniformOrder(std::int64_t count) : permutation_(count) {}
  std::int64_t count() const { return permutation_.count(); }

  /// The number at `index`, both in [0, count).
  std::int64_t at(const Key& key, std::int64_t index) const;
  /// The inverse: at(key, index_of(key, number)) == number.
  std::int64_t index_of(const Key& key, std::int64_t number) const;

  /// Up to how many numbers all orders are equally likely. The order of samples depends on it: do not change.
  static constexpr std::int64_t kMostShuffled = 256;

 private:
  KeyedPermutation permutation_;
};

}  // namespace lockstep
