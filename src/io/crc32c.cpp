// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/crc32c.h"

#include <array>

namespace lockstep {

namespace {

constexpr std::uint32_t kReflectedPolynomial = 0x82F63B78;

constexpr std::array<std::uint32_t, 256> make_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? kReflectedPolynomial : 0);
    table[byte] = value;
  }
  return table;
}

constexpr std::array<std::uint32_t, 256> kTable = make_table();

}  // namespace

std::uint32_t crc32c(const void* data, std::size_t bytes) {
  const auto* at = static_cast<const unsigned char*>(data);
  std::uint32_t value = 0xFFFFFFFF;
  for (std::size_t i = 0; i < bytes; ++i) value = kTable[(value ^ at[i]) & 0xFF] ^ (value >> 8);
  return ~value;
}

std::uint32_t masked_crc32c(const void* data, std::size_t bytes) {
  const std::uint32_t value = crc32c(data, bytes);
  return ((value >> 15) | (value << 17)) + 0xA282EAD8U;
}

}  // namespace lockstep
