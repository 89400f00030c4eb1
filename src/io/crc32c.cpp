// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/crc32c.h"

#include <array>
#include <cstring>

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

std::uint32_t by_table(std::uint32_t value, const unsigned char* at, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) value = kTable[(value ^ at[i]) & 0xFF] ^ (value >> 8);
  return value;
}

#ifdef __x86_64__
/// The instruction of SSE 4.2, eight bytes at a time.
__attribute__((target("sse4.2"))) std::uint32_t by_instruction(std::uint32_t value, const unsigned char* at,
                                                               std::size_t bytes) {
  std::uint64_t wide = value;
  for (; bytes >= 8; bytes -= 8, at += 8) {
    std::uint64_t next = 0;
    std::memcpy(&next, at, 8);
    wide = __builtin_ia32_crc32di(wide, next);
  }
  return by_table(static_cast<std::uint32_t>(wide), at, bytes);
}
const bool kHasInstruction = __builtin_cpu_supports("sse4.2") > 0;
#else
constexpr bool kHasInstruction = false;
std::uint32_t by_instruction(std::uint32_t, const unsigned char*, std::size_t) { return 0; }
#endif

}  // namespace

std::uint32_t crc32c_by_table(const void* data, std::size_t bytes) {
  return ~by_table(0xFFFFFFFF, static_cast<const unsigned char*>(data), bytes);
}

std::uint32_t crc32c(const void* data, std::size_t bytes) {
  if (!kHasInstruction) return crc32c_by_table(data, bytes);
  return ~by_instruction(0xFFFFFFFF, static_cast<const unsigned char*>(data), bytes);
}

std::uint32_t masked_crc32c(const void* data, std::size_t bytes) {
  const std::uint32_t value = crc32c(data, bytes);
  return ((value >> 15) | (value << 17)) + 0xA282EAD8U;
}

}  // namespace lockstep
