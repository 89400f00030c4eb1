// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>
#include <vector>

#include "core/buffer.h"

namespace lockstep {

/// A copy of `values` in the device's memory, which is there when the call returns.
template <typename T>
Buffer on_device(Device& device, const std::vector<T>& values) {
  static_assert(std::is_trivially_copyable_v<T>);
  Buffer buffer(device, values.size() * sizeof(T));
  if (!values.empty()) device.copy_from_host(buffer.data(), values.data(), buffer.size_bytes());
  return buffer;
}

}  // namespace lockstep
