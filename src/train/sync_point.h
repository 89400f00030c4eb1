// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A synchronisation point: where the microshards of all ranks exchange a collective layer's sums. Each
// microshard fills a leaf; sum_forward() and sum_backward() add the leaves of each group of microshards along
// the tree, and give the layer the totals.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "comm/small_sum.h"
#include "train/executor_context.h"

namespace lockstep {

class SyncPoint {
 public:
  /// All ranks, in the same order. No communication yet. Throws Error(config) if the layer's group does not
  /// divide the shards.
  SyncPoint(const ExecutorContext& context, CollectiveLayer& layer);

  /// Where an own microshard puts its numbers, on the device. Workers fill different leaves concurrently.
  double* forward_leaf(int shard) { return forward_.leaf(shard); }
  double* backward_leaf(int shard) { return backward_.leaf(shard); }

  /// All ranks, when all leaves are filled. The layer gets the totals, which are returned as well: one per
  /// group, the same on all ranks, valid until the next call. No allocation.
  std::span<const double* const> sum_forward();
  std::span<const double* const> sum_backward();

 private:
  std::span<const double* const> sum(SmallSum& sums, const std::string& name);

  const Lane& lane_;
  const KernelTable& kernels_;
  VariableStore& variables_;
  CollectiveLayer& layer_;
  std::string forward_name_, backward_name_;
  SmallSum forward_, backward_;
  std::vector<const double*> totals_;  ///< by group
};

}  // namespace lockstep
