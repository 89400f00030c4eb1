// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The emulated devices' memory and pinned host memory. Not thread-safe: callers hold the lock of runtime.cpp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>

namespace lockstep::emulation {

class Memory {
 public:
  static constexpr std::size_t kAlignment = 256;  ///< alignment of allocations, as cudaMalloc's
  /// Returns poisoned memory between two canaries, or null if the device would exceed `limit` bytes.
  void* allocate(int device, std::size_t bytes, std::size_t limit);
  /// Returns memory whose pages are all the same one, so that it costs none: for work that is only counted.
  /// Without canaries and without a limit. `device` -1: pinned host memory.
  void* allocate_shared(int device, std::size_t bytes);
  void* allocate_pinned(std::size_t bytes);
  /// Returns false if `address` is not the beginning of an allocation of this kind. Ends the process if a
  /// canary is broken.
  bool release(void* address, bool pinned);
  /// True for addresses in device or pinned memory, which an asynchronous copy may access later.
  bool may_be_used_later(const void* address) const;
  /// True if all of these bytes lie in one allocation. Quick for the few arrays of a kernel.
  bool holds(const void* address, std::size_t bytes);
  /// Of the allocation that begins there; 0: none does.
  std::size_t bytes_at(const void* address) const;
  std::size_t used_bytes(int device) const;

 private:
  struct Allocation {
    int device;  ///< -1: pinned host memory
    std::size_t bytes;
    std::size_t mapped_bytes = 0;  ///< by allocate_shared(); 0: not
  };
  struct Range {
    std::uintptr_t begin = 0, end = 0;
  };
  std::map<char*, Allocation> allocations_;
  std::array<Range, 8> last_held_;  ///< allocations that holds() found last
  std::size_t next_held_ = 0;
};

}  // namespace lockstep::emulation
