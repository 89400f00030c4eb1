// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Where numbers live and where work runs. Layers hold tensors of a device and pass a stream on; they never
// ask which device it is. The CPU is one device; a GPU is another implementation of the same interface.
#pragma once

#include <cstddef>
#include <string>

namespace lockstep {

/// Memory and copies of one device. Thread-safe.
class Device {
 public:
  virtual ~Device() = default;
  virtual std::string name() const = 0;
  /// 64-byte aligned and zeroed; throws Error(device) that says how much was asked for. allocate(0) is null.
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void deallocate(void* address, std::size_t bytes) noexcept = 0;
  virtual void copy_from_host(void* to, const void* from, std::size_t bytes) = 0;
  virtual void copy_to_host(void* to, const void* from, std::size_t bytes) = 0;
  /// The most bytes that were allocated at one time.
  virtual std::size_t peak_bytes() const = 0;
};

/// A queue of work on a device, in order. On the CPU it is the calling thread itself: work is done when the
/// call returns, and `native` is null.
struct Stream {
  Device* device = nullptr;
  void* native = nullptr;
};

Device& cpu_device();

}  // namespace lockstep
