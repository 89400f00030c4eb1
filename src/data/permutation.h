// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A permutation of the numbers below `count`, chosen by a key: a computation without tables.
//
// A Feistel network with alternating, possibly unequal halves over [0, 2^bits), the smallest such range (at
// least 2^6) that contains all numbers. A number outside passes through the network again (cycle walking:
// Black and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002). From 33 numbers on this takes
// fewer than two passes on average.
//
// Why a permutation and no shuffle buffer: a buffer is state that a checkpoint would have to store, and its
// content depends on ranks. This needs no memory, and a resumed run continues inside the epoch. With halves
// below three bits some orders of few samples would be much more frequent than others, hence the least range
// of 2^6.
#pragma once

#include <cstdint>

namespace lockstep {

class KeyedPermutation {
 public:
  struct Key {
    std::uint64_t seed;
    std::uint32_t purpose;  ///< philox_purpose()
    std::uint32_t step;     ///< the epoch
  };

  /// A permutation of 1 to 2^60 numbers.
  explicit KeyedPermutation(std::int64_t count);
  std::int64_t count() const { return count_; }

  /// The number at `index`, both in [0, count).
  std::int64_t at(const Key& key, std::int64_t index) const;
  /// The inverse: at(key, index_of(key, number)) == number.
  std::int64_t index_of(const Key& key, std::int64_t number) const;

 private:
  std::int64_t count_;
  int low_bits_, high_bits_;  ///< of the two halves of a number
};

}  // namespace lockstep
