// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Kinds of devices that a program has beside the CPU. Who builds a program registers them before the first
// command (src/main.cpp); everything else finds them here by name and knows none of them.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/device.h"
#include "kernels/kernel_table.h"

namespace lockstep {

struct DeviceDescription {
  std::string name;     ///< "NVIDIA H200"
  std::string address;  ///< on the host's bus: "0000:1b:00.0"; the same device has one address
  std::size_t memory_bytes = 0;
  int numa_node = -1;  ///< -1: not known
};

struct KernelOptions {
  bool allow_tf32 = false;  ///< matrix products may round their factors to 10 bits of mantissa
};

/// Thread-safe. Throws Error(device), but for what is said.
class Backend {
 public:
  virtual ~Backend() = default;
  /// As in the configuration's `device`.
  virtual std::string_view name() const = 0;
  /// Devices that this process sees, in the order of the environment variable that hides some. Never throws.
  virtual int num_devices() = 0;
  /// Why there are none. Never throws.
  virtual std::string problem() = 0;
  virtual DeviceDescription describe(int index) = 0;
  /// The device, made ready for this process: once, before any other call for it. Lives as long as the
  /// program.
  virtual Device& open(int index) = 0;
  virtual const KernelTable& kernels(const KernelOptions& options) = 0;
  /// What it is built with and runs on: ("CUDA driver", "13.0"). Never throws.
  virtual std::vector<std::pair<std::string, std::string>> versions() = 0;
};

/// Before the first use; not thread-safe. The backend must live as long as the program.
void register_backend(Backend& backend);
std::span<Backend* const> backends();
/// Null if there is none of this name.
Backend* find_backend(std::string_view name);

}  // namespace lockstep
