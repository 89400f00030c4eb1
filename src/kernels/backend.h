// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Device backends other than the CPU, by name. The GPU module registers its backend when the program loads it
// (run/setup/gpu_module.h); tests with an emulated GPU register it in their main(). All other code looks
// backends up here and depends on none of them.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/device.h"
#include "core/function_ref.h"
#include "kernels/kernel_table.h"

namespace lockstep {

struct DeviceDescription {
  std::string name;     ///< "NVIDIA H200"
  std::string address;  ///< address on the host's bus: "0000:1b:00.0"; unique per device
  std::size_t memory_bytes = 0;
  int numa_node = -1;  ///< -1: unknown
  int num_multiprocessors = 0;
};

struct KernelOptions {
  bool allow_tf32 = false;  ///< matrix products may round their inputs to 10 bits of mantissa
  bool check_plans = true;  ///< what a library chooses is checked, and passed over where it computes wrongly
};

/// A kind of device. Thread-safe. Functions throw Error(device) unless their comment says otherwise.
class Backend {
 public:
  virtual ~Backend() = default;
  /// The name used in the configuration's `device`.
  virtual std::string_view name() const = 0;
  /// The number of devices visible to this process. Indices follow the order of the environment variable that
  /// restricts visibility (CUDA_VISIBLE_DEVICES). Never throws.
  virtual int num_devices() = 0;
  /// Why no device is usable; empty if one is. Never throws.
  virtual std::string problem() = 0;
  virtual DeviceDescription describe(int index) = 0;
  /// Initialises the device for this process and returns it. Further calls return the same object, which
  /// lives as long as the program.
  virtual Device& open(int index) = 0;
  virtual const KernelTable& kernels(const KernelOptions& options) = 0;
  /// Versions of the drivers and libraries in use: ("CUDA driver", "13.0"). Never throws.
  virtual std::vector<std::pair<std::string, std::string>> versions() = 0;
  /// The algorithms that libraries have chosen so far, for the operations of all models of this process: one
  /// line each, sorted. Bits depend on them.
  virtual std::string chosen_algorithms() = 0;
  /// The algorithms that were passed over because they compute wrongly, and what is wrong: one line each,
  /// sorted.
  virtual std::string wrong_algorithms() = 0;
  /// Those that were passed over because their arithmetic is not that of sums of products: one line each,
  /// sorted.
  virtual std::string inexact_algorithms() = 0;
  /// Frees what making primitives has kept on devices. Call it when those of a model are made.
  virtual void free_setup_memory() = 0;
  /// From now on, in this process, each operation that a table names has the algorithm that it names; the
  /// others have the one that the library lists first. Throws Error(config) for what is no table.
  virtual void use_measured_algorithms(const std::string& table) = 0;
  /// Returns the table with the fastest algorithms of all operations whose primitives `prepare` makes on the
  /// current device. It is in use from then on.
  virtual std::string measure_algorithms(FunctionRef<void()> prepare) = 0;
};

/// Adds a backend. Call before the first lookup; not thread-safe. The backend must live as long as the
/// program.
void register_backend(Backend& backend);
std::span<Backend* const> backends();
/// Returns null if no backend has this name.
Backend* find_backend(std::string_view name);

}  // namespace lockstep
