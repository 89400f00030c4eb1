// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A synchronisation point: where the microshards of all ranks exchange a collective layer's sums. Each
// microshard fills a leaf; sum() adds the leaves of each group of microshards along the tree, and gives the
// layer the totals.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "comm/small_sum.h"
#include "train/executor_context.h"

namespace lockstep {

class SyncPoint {
 public:
  /// All ranks, in the same order. No communication yet. `group_by_group`: each worker has whole groups, and
  /// sums them itself. This may differ between ranks. Throws Error(config) if the layer's group does not
  /// divide the shards.
  SyncPoint(const ExecutorContext& context, CollectiveLayer& layer, bool group_by_group);

  /// Where an own microshard puts its numbers, on the device. Workers fill different leaves concurrently.
  double* forward_leaf(int shard) { return forward_.leaf(shard); }
  double* backward_leaf(int shard) { return backward_.leaf(shard); }

  /// All ranks, when all leaves are filled. The layer gets the totals, which are returned as well: one per
  /// group, the same on all ranks, valid until the next call. No allocation.
  std::span<const double* const> sum(bool backward);
  /// The three parts of sum(), of which all ranks call exchange(). On a device, begin() and finish() only add
  /// work to the stream, the same in each step.
  void begin(bool backward) { of(backward).merge_own(merged_); }
  void exchange(bool backward) { of(backward).exchange((backward ? backward_name_ : forward_name_).c_str()); }
  std::span<const double* const> finish(bool backward);

  /// Gives the layer the total of a group, on the worker that has filled the group's leaves, which are all
  /// its own. sum() follows when all groups are done.
  void sum_forward_group(const Lane& lane, int group);
  void sum_backward_group(const Lane& lane, int group);
  /// Microshards of a group.
  int group_size() const { return forward_.group_size(); }

 private:
  SmallSum& of(bool backward) { return backward ? backward_ : forward_; }

  const Lane& lane_;
  const KernelTable& kernels_;
  VariableStore& variables_;
  CollectiveLayer& layer_;
  std::string forward_name_, backward_name_;
  SmallSum forward_, backward_;
  std::vector<const double*> totals_;  ///< by group
  bool merged_;                        ///< the sums of groups are taken one by one
};

}  // namespace lockstep
