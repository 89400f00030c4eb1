// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace lockstep::emulation {
namespace {

constexpr int kPoison = 0xFF;  // NaN as float and double, -1 as an integer
constexpr int kCanary = 0xA5;
constexpr std::size_t kCanaryBytes = 256;
constexpr std::size_t kSharedPage = std::size_t{2} << 20;

std::size_t block_bytes(std::size_t bytes) {
  return (bytes + 2 * kCanaryBytes + Memory::kAlignment - 1) / Memory::kAlignment * Memory::kAlignment;
}

char* allocate_between_canaries(std::size_t bytes, int fill) {
  char* block = static_cast<char*>(std::aligned_alloc(Memory::kAlignment, block_bytes(bytes)));
  if (block == nullptr) return nullptr;
  std::memset(block, kCanary, kCanaryBytes);
  std::memset(block + kCanaryBytes, fill, bytes);
  std::memset(block + kCanaryBytes + bytes, kCanary, kCanaryBytes);
  return block + kCanaryBytes;
}

void check_canary(const char* canary, const char* where, const void* address, std::size_t bytes) {
  for (std::size_t i = 0; i < kCanaryBytes; ++i)
    if (static_cast<unsigned char>(canary[i]) != kCanary) {
      std::fprintf(stderr, "emulated GPU: something wrote %s the %zu bytes at %p\n", where, bytes, address);
      std::abort();
    }
}

}  // namespace

void* Memory::allocate_shared(int device, std::size_t bytes) {
  static const int file = [] {
    const int made = memfd_create("emulated memory", 0);
    return made >= 0 && ftruncate(made, static_cast<off_t>(kSharedPage)) == 0 ? made : -1;
  }();
  const std::size_t rounded = (bytes + kSharedPage - 1) / kSharedPage * kSharedPage;
  void* const address =
      mmap(nullptr, rounded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (file < 0 || address == MAP_FAILED) return nullptr;
  char* const begin = static_cast<char*>(address);
  for (std::size_t at = 0; at < rounded; at += kSharedPage)
    if (mmap(begin + at, kSharedPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED)
      return nullptr;
  allocations_[begin] = {device, bytes, rounded};
  return begin;
}

void* Memory::allocate(int device, std::size_t bytes, std::size_t limit) {
  if (bytes > limit || used_bytes(device) > limit - bytes) return nullptr;
  char* address = allocate_between_canaries(bytes, kPoison);
  if (address != nullptr) allocations_[address] = {device, bytes};
  return address;
}

void* Memory::allocate_pinned(std::size_t bytes) {
  char* address = allocate_between_canaries(bytes, 0);
  if (address != nullptr) allocations_[address] = {-1, bytes};
  return address;
}

bool Memory::release(void* address, bool pinned) {
  const auto found = allocations_.find(static_cast<char*>(address));
  if (found == allocations_.end() || (found->second.device == -1) != pinned) return false;
  const std::size_t bytes = found->second.bytes;
  char* begin = found->first;
  last_held_ = {};
  if (found->second.mapped_bytes > 0) {
    munmap(begin, found->second.mapped_bytes);
    allocations_.erase(found);
    return true;
  }
  check_canary(begin - kCanaryBytes, "before", begin, bytes);
  check_canary(begin + bytes, "past", begin, bytes);
  std::memset(begin, kPoison, bytes);
  std::free(begin - kCanaryBytes);
  allocations_.erase(found);
  return true;
}

bool Memory::may_be_used_later(const void* address) const {
  char* wanted = static_cast<char*>(const_cast<void*>(address));
  auto after = allocations_.upper_bound(wanted);
  if (after == allocations_.begin()) return false;
  --after;
  return wanted < after->first + after->second.bytes;
}

bool Memory::holds(const void* address, std::size_t bytes) {
  const auto first = reinterpret_cast<std::uintptr_t>(address);
  const auto within = [&](const Range& range) { return range.begin <= first && first + bytes <= range.end; };
  for (const Range& range : last_held_)
    if (within(range)) return true;
  auto after = allocations_.upper_bound(static_cast<char*>(const_cast<void*>(address)));
  if (after == allocations_.begin()) return false;
  --after;
  const auto begin = reinterpret_cast<std::uintptr_t>(after->first);
  const Range range{begin, begin + after->second.bytes};
  if (!within(range)) return false;
  last_held_[next_held_++ % last_held_.size()] = range;
  return true;
}

std::size_t Memory::bytes_at(const void* address) const {
  const auto found = allocations_.find(static_cast<char*>(const_cast<void*>(address)));
  return found == allocations_.end() ? 0 : found->second.bytes;
}

std::size_t Memory::used_bytes(int device) const {
  std::size_t sum = 0;
  for (const auto& [address, allocation] : allocations_)
    if (allocation.device == device) sum += allocation.bytes;
  return sum;
}

}  // namespace lockstep::emulation
