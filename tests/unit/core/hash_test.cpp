// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "core/hash.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

namespace lockstep {
namespace {

// Checkpoints store both hashes. The expected values are XXH3's published results for the empty input.
TEST(Hash, EmptyInput) {
  EXPECT_EQ(hash64("", 0), 0x2d06800538d394c2U);
  EXPECT_EQ(Digest().hex(), "99aa06d3014798d86001c324468d497f");
}

TEST(Hash, EveryBitChangesTheHash) {
  std::array<unsigned char, 1000> data{};
  const std::uint64_t before = hash64(data.data(), data.size());
  const std::string digest = Digest().add(data.data(), data.size()).hex();
  for (std::size_t i : {0U, 500U, 999U}) {
    data[i] ^= 4;
    EXPECT_NE(hash64(data.data(), data.size()), before);
    EXPECT_NE(Digest().add(data.data(), data.size()).hex(), digest);
    data[i] ^= 4;
  }
  EXPECT_EQ(hash64(data.data(), data.size()), before);
  EXPECT_NE(hash64(data.data(), data.size() - 1), before);
}

TEST(Digest, BytesConcatenateButTextsStaySeparate) {
  EXPECT_EQ(Digest().add("ab", 2).add("c", 1).hex(), Digest().add("abc", 3).hex());
  EXPECT_NE(Digest().add(std::string_view("ab")).add(std::string_view("c")).hex(),
            Digest().add(std::string_view("a")).add(std::string_view("bc")).hex());
  EXPECT_NE(Digest().add(std::int64_t{1}).hex(), Digest().add(std::int64_t{2}).hex());
  EXPECT_EQ(Digest().hex().size(), 32U);
}

TEST(Hash64, PiecewiseEqualsWhole) {
  std::vector<unsigned char> bytes(100'003);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(i * 131 >> 3);
  for (const std::size_t piece : {1UL, 7UL, 256UL, 4096UL, 99'999UL}) {
    Hash64 hash;
    for (std::size_t at = 0; at < bytes.size(); at += piece)
      hash.add(&bytes[at], std::min(piece, bytes.size() - at));
    EXPECT_EQ(hash.value(), hash64(bytes.data(), bytes.size())) << piece;
  }
}

}  // namespace
}  // namespace lockstep
