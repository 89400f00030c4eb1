// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/crc32c.h"

#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <string_view>

namespace lockstep {
namespace {

// RFC 3720, appendix B.4, which gives the bytes in the order of transmission.
TEST(Crc32c, VectorsOfRfc3720) {
  std::array<unsigned char, 32> data{};
  EXPECT_EQ(crc32c(data.data(), data.size()), 0x8A9136AAU);
  data.fill(0xFF);
  EXPECT_EQ(crc32c(data.data(), data.size()), 0x62A8AB43U);
  std::iota(data.begin(), data.end(), static_cast<unsigned char>(0));
  EXPECT_EQ(crc32c(data.data(), data.size()), 0x46DD794EU);
  std::iota(data.rbegin(), data.rend(), static_cast<unsigned char>(0));
  EXPECT_EQ(crc32c(data.data(), data.size()), 0x113FDB5CU);
  constexpr std::array<unsigned char, 48> kReadCommand = {
      0x01, 0xc0, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
      0x14, 0x00, 0x00, 0x00, 0x00, 0x00, 0x04, 0x00, 0x00, 0x00, 0x00, 0x14, 0x00, 0x00, 0x00, 0x18,
      0x28, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00};
  EXPECT_EQ(crc32c(kReadCommand.data(), kReadCommand.size()), 0xD9963A56U);
  constexpr std::string_view kDigits = "123456789";
  EXPECT_EQ(crc32c(kDigits.data(), kDigits.size()), 0xE3069283U);
  EXPECT_EQ(crc32c(nullptr, 0), 0U);
}

TEST(Crc32c, TheInstructionAndTheTableAgreeAtEachLength) {
  std::array<unsigned char, 67> data{};
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<unsigned char>(i * 37 + 11);
  for (std::size_t first = 0; first < 3; ++first)
    for (std::size_t bytes = 0; bytes <= data.size() - first; ++bytes)
      EXPECT_EQ(crc32c(data.data() + first, bytes), crc32c_by_table(data.data() + first, bytes))
          << first << ' ' << bytes;
}

// The bytes of TFRecords with "", "a" and "hello", read as little-endian numbers.
TEST(Crc32c, MaskedVectorsOfTfRecords) {
  EXPECT_EQ(masked_crc32c("", 0), 0xA282EAD8U);
  EXPECT_EQ(masked_crc32c("a", 1), 0x28E46E78U);
  EXPECT_EQ(masked_crc32c("hello", 5), 0x191C1FBBU);
  constexpr std::array<char, 8> kNoLength{};
  EXPECT_EQ(masked_crc32c(kNoLength.data(), kNoLength.size()), 0x07980329U);
}

}  // namespace
}  // namespace lockstep
