// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Hashes of bytes (XXH3). The 64-bit hash checks data sets on disk; the 128-bit hash is the digest that users
// compare.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace lockstep {

std::uint64_t hash64(const void* data, std::size_t bytes);
inline std::uint64_t hash64(std::string_view text) { return hash64(text.data(), text.size()); }

/// hash64() of bytes that are added in pieces.
class Hash64 {
 public:
  Hash64();
  ~Hash64();
  Hash64(const Hash64&) = delete;
  Hash64& operator=(const Hash64&) = delete;
  void add(const void* data, std::size_t bytes);
  std::uint64_t value() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// A 128-bit hash of everything that is added, in order.
class Digest {
 public:
  Digest();
  ~Digest();
  Digest(const Digest&) = delete;
  Digest& operator=(const Digest&) = delete;
  Digest& add(const void* data, std::size_t bytes);
  /// Adds the length and the characters, so that neighbouring texts cannot be confused.
  Digest& add(std::string_view text);
  Digest& add(std::int64_t value);
  /// 32 hexadecimal digits.
  std::string hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep
