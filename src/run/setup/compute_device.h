// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The device that a rank computes on: the CPU, or its GPU.
#pragma once

#include <string>

#include "comm/communicator.h"
#include "kernels/backend.h"
#include "run/sections/config.h"

namespace lockstep {

struct ComputeDevice {
  Device& device;
  const KernelTable& kernels;
  int index = -1;                 ///< among the devices that this process sees; -1: the CPU
  DeviceDescription description;  ///< of a GPU
  Backend* backend = nullptr;     ///< null: the CPU
  bool is_gpu() const { return index >= 0; }
  /// What one of `ranks_on_host` ranks may use; 0: not known.
  double memory_bytes(int ranks_on_host) const;
};

/// The GPU of a rank: its number among the ranks of its host, modulo the GPUs that it sees.
int device_of_rank(int rank_on_host, int visible_devices);

/// Opens the device that the configuration names. This rank alone: throws Error(config) for a device that
/// this build or this host does not have.
ComputeDevice open_device(const Config& config, int rank_on_host);

/// One line per rank: rank, host, GPU, address, NUMA node, cores; the same text on all ranks, empty on the
/// CPU. `shared` is set if several ranks compute on one GPU. All ranks.
std::string device_table(Communicator& world, const ComputeDevice& device, bool* shared);

}  // namespace lockstep
