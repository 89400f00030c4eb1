// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "core/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <fmt/format.h>

namespace lockstep {

std::uint64_t hash64(const void* data, std::size_t bytes) { return XXH3_64bits(data, bytes); }

struct Hash64::State {
  XXH3_state_t* xxh = XXH3_createState();
  State() { XXH3_64bits_reset(xxh); }
  ~State() { XXH3_freeState(xxh); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
};

Hash64::Hash64() : state_(std::make_unique<State>()) {}
Hash64::~Hash64() = default;
void Hash64::add(const void* data, std::size_t bytes) { XXH3_64bits_update(state_->xxh, data, bytes); }
std::uint64_t Hash64::value() const { return XXH3_64bits_digest(state_->xxh); }

struct Digest::State {
  XXH3_state_t* xxh = XXH3_createState();
  State() { XXH3_128bits_reset(xxh); }
  ~State() { XXH3_freeState(xxh); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
};

Digest::Digest() : state_(std::make_unique<State>()) {}
Digest::~Digest() = default;

Digest& Digest::add(const void* data, std::size_t bytes) {
  XXH3_128bits_update(state_->xxh, data, bytes);
  return *this;
}

Digest& Digest::add(std::string_view text) {
  add(static_cast<std::int64_t>(text.size()));
  return add(text.data(), text.size());
}

Digest& Digest::add(std::int64_t value) { return add(&value, sizeof value); }

std::string Digest::hex() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(state_->xxh);
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace lockstep
