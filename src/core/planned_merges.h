// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Makes the tables of TreeMerges, in the memory of a device.
#pragma once

#include <cstdint>
#include <vector>

#include "core/buffer.h"
#include "core/tree_merges.h"

namespace lockstep {

class PlannedMerges {
 public:
  /// An input at double `place`. Returns its number.
  int add_input(std::int64_t place);
  /// Merges input `from` into input `into`. An input's steps run in the order in which they were added.
  void add_step(int into, int from);
  /// Input `input` is a result after all steps, for double `place`.
  void add_output(int input, std::int64_t place);
  /// Copies the tables to the device. After it, nothing can be added.
  void load(Device& device);
  /// The tables after load(), valid as long as this object.
  const TreeMerges& tree() const { return tree_; }

 private:
  struct LeveledStep {
    TreeMerges::Step step;
    int level;
  };
  std::vector<std::int64_t> places_;
  std::vector<int> levels_;  ///< of each input: the steps that it has been through
  std::vector<LeveledStep> steps_;
  std::vector<TreeMerges::Output> outputs_;
  Buffer tables_;
  TreeMerges tree_;
};

/// The merges of `count` partials at multiples of `stride`: number 1 is merged into number 0, then number 2,
/// and so on. The first one must have been copied to place `count`, where it is overwritten; the result is
/// for place `count + 1`.
PlannedMerges merges_in_order(Device& device, int count, std::int64_t stride);

}  // namespace lockstep
