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
  std::span<Lane> lanes;  ///< by worker, each with its stream; grow_scratch() is called after preparation
  Communicator& sync;     ///< a duplicate of its own, for synchronisation points (batch norm)
  /// Connects the devices of the same ranks, on the first lane's stream. Null: through host memory.
  DeviceCommunicator* direct_sync;
  int shards;  ///< microshards of a global batch
  std::uint64_t seed;

  /// The stream of the first lane; a device has one lane.
  void* stream() const { return lanes.front().stream; }
};

}  // namespace lockstep
