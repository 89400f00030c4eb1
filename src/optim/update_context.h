// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What an update of the variables works on, after the gradients of the global batch are summed.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "core/device.h"
#include "core/range.h"
#include "core/sparse_rows.h"
#include "core/thread_pool.h"
#include "kernels/kernel_table.h"
#include "kernels/lane.h"
#include "model/variable_store.h"

namespace lockstep {

/// All references outlive what is made with them.
struct UpdateContext {
  VariableStore& variables;
  const KernelTable& kernels;
  Device& device;
  ThreadPool& pool;
  std::span<Lane> lanes;  ///< the first ones are those of the threads, each with its stream
};

/// The dense gradients are summed in parts, of which each rank has one (docs/sharding.md): `of_rank` has
/// flat ranges, ascending. `allgather(mine, bytes, all)` gives every rank the bytes of all ranks, in rank
/// order; all ranks call it. Host memory only.
struct GradientParts {
  int rank = 0;
  std::vector<std::vector<Range>> of_rank;
  std::function<void(const void* mine, std::size_t bytes, void* all)> allgather;
};

/// The summed gradients of sparse tables, by Variable::sparse_index.
class SparseTotals {
 public:
  virtual ~SparseTotals() = default;
  /// The count is in host memory; rows and values are on the device. Waits for the device where the host does
  /// not know the count yet.
  virtual const SparseRows& total(int index) const = 0;
  /// total() with the count on the device, for kernels that read it, and with SparseRows::most. No wait.
  virtual const SparseRows& total_on_device(int index) const = 0;
};

}  // namespace lockstep
