// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What runs a model: made once per process, shared by training, evaluation and prediction.
#pragma once

#include <cstdint>
#include <span>

#include "comm/communicator.h"
#include "comm/device_communicator.h"
#include "core/thread_pool.h"
#include "kernels/kernel_table.h"
#include "model/graph.h"
#include "model/heads.h"

namespace lockstep {

/// All references outlive whoever gets the context.
struct ExecutorContext {
  Graph& graph;
  VariableStore& variables;
  const Heads& heads;
  const KernelTable& kernels;
  Device& device;
  ThreadPool& pool;
  /// Each with its stream: one per thread on the CPU. A device's first lane is that of its one thread; a
  /// training step may use the others, too (train/branches.h). grow_scratch() is called after preparation.
  std::span<Lane> lanes;
  Communicator& sync;  ///< a duplicate of its own, for synchronisation points (batch norm)
  /// Connects the devices of the same ranks, on the first lane's stream. Null: through host memory.
  DeviceCommunicator* direct_sync;
  int shards;  ///< microshards of a global batch
  std::uint64_t seed;

  /// The first lane's. On a device, all work that is not a branch of a training step enters it.
  void* stream() const { return lanes.front().stream; }
};

}  // namespace lockstep
