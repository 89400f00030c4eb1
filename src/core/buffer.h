// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Owns a block of device memory, or of pinned host memory of a device. The memory is 64-byte aligned and
// initialised to zero. Move-only; tensors are views into it.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "core/device.h"

namespace lockstep {

class Buffer {
 public:
  Buffer() = default;
  Buffer(Device& device, std::size_t bytes)
      : device_(&device), address_(device.allocate(bytes)), bytes_(bytes) {}
  static Buffer pinned(Device& device, std::size_t bytes) {
    Buffer buffer;
    buffer.pinned_ = true;
    buffer.address_ = device.allocate_pinned(bytes);
    buffer.device_ = &device;
    buffer.bytes_ = bytes;
    return buffer;
  }
  ~Buffer() { reset(); }
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    if (this != &other) {
      reset();
      swap(other);
    }
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  void* data() const { return address_; }
  std::size_t size_bytes() const { return bytes_; }
  template <typename T>
  std::span<T> as() const {
    return {static_cast<T*>(address_), bytes_ / sizeof(T)};
  }

 private:
  void reset() noexcept {
    if (device_ != nullptr && pinned_) device_->deallocate_pinned(address_, bytes_);
    if (device_ != nullptr && !pinned_) device_->deallocate(address_, bytes_);
    device_ = nullptr;
    pinned_ = false;
    address_ = nullptr;
    bytes_ = 0;
  }
  void swap(Buffer& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(address_, other.address_);
    std::swap(bytes_, other.bytes_);
    std::swap(pinned_, other.pinned_);
  }

  Device* device_ = nullptr;
  void* address_ = nullptr;
  std::size_t bytes_ = 0;
  bool pinned_ = false;
};

}  // namespace lockstep
