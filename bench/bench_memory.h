// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/buffer.h"
#include "core/device.h"

namespace lockstep {

/// Numbers around zero, without zeros and denormals, which have a different speed.
inline Buffer bench_floats(std::int64_t count) {
  Buffer buffer(cpu_device(), static_cast<std::size_t>(count) * sizeof(float));
  const auto values = buffer.as<float>();
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(i * 2654435761U % 1000) * 1e-4F - 0.05F;
  return buffer;
}

}  // namespace lockstep
