// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The summation tree over G leaves (the shards of a global batch). Pure arithmetic: no communication and no
// data.
//
// A node of n leaves has the largest power of two below n in its left child. Floating-point addition is
// commutative but not associative. The tree fixes the association, so a sum has the same bits no matter which
// rank computes which part of it.
//
// Vocabulary: a *partial* is the sum of one node (Subtree). The *maximal subtrees* of a leaf range are the
// largest nodes inside it, in order. A merge always adds the right partial to the left one.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/range.h"

namespace lockstep {

/// Leaves [first, last) that form one node of the tree.
struct Subtree {
  int first, last;
  int size() const { return last - first; }
  friend bool operator==(const Subtree&, const Subtree&) = default;
};

/// The number of leaves in the left child of a node of `n` >= 2 leaves: the largest power of two below n.
int tree_left_size(int n);
/// True if leaves [first, last) are a node of the tree over `shards` leaves.
bool is_tree_node(int first, int last, int shards);
/// The maximal subtrees of [first, last), in order: at most 2 log2(shards) nodes, none for an empty range.
std::vector<Subtree> maximal_subtrees(int first, int last, int shards);

/// The consecutive leaves of a rank: rank r of R owns [r G / R, (r + 1) G / R). Some ranges are empty if R >
/// G.
Range shards_of_rank(int rank, int ranks, int shards);
/// The rank that owns `shard`.
int rank_of_shard(int shard, int ranks, int shards);
/// shards_of_rank for every rank.
std::vector<Range> shards_of_all_ranks(int ranks, int shards);

/// One merge: adds partial `from` to partial `into`, which is the left operand. `root`: the sum is that of
/// all leaves. `middle`: the first leaf of the right operand, which no other node has.
struct TreeStep {
  int into, from;
  bool root = false;
  int middle = 0;
  friend bool operator==(const TreeStep&, const TreeStep&) = default;
};

/// Merges the partials of consecutive leaf ranges (of threads or ranks) into the partials of their union.
/// Computed once; running it does not allocate.
class TreePlan {
 public:
  TreePlan() = default;
  /// The inputs are the maximal subtrees of each range, in order. The ranges are consecutive without gaps;
  /// ranges may be empty.
  TreePlan(int shards, std::span<const Range> ranges);

  std::span<const Subtree> inputs() const { return inputs_; }
  /// The index of the first input of range `r`. first_input(number of ranges) is the number of inputs.
  int first_input(int r) const { return first_input_[static_cast<std::size_t>(r)]; }
  std::span<const TreeStep> steps() const { return steps_; }
  /// The maximal subtrees of the union, and the input that holds each of them after all steps.
  std::span<const Subtree> outputs() const { return outputs_; }
  int output_slot(int k) const { return output_slots_[static_cast<std::size_t>(k)]; }

 private:
  int build(int first, int last, int shards, int& next);

  std::vector<Subtree> inputs_, outputs_;
  std::vector<int> first_input_, output_slots_;
  std::vector<TreeStep> steps_;
};

/// Runs a plan: calls add(into, from) for every step, in order.
template <typename Add>
void tree_combine(const TreePlan& plan, Add&& add) {
  for (const TreeStep& step : plan.steps()) add(step.into, step.from);
}

/// A plan for leaves that are finished in order, working like a binary counter: leaf i is written to slot
/// `leaf_slot(i)`, then merges_after(i) merges the top slots. After the last leaf, slots 0 .. num_results() -
/// 1 hold the maximal subtrees of the range.
class CounterPlan {
 public:
  CounterPlan() = default;
  CounterPlan(int shards, Range leaves);

  int num_leaves() const { return static_cast<int>(leaf_slots_.size()); }
  /// The slot of leaf `i`, counted from the first leaf of the range.
  int leaf_slot(int i) const { return leaf_slots_[static_cast<std::size_t>(i)]; }
  std::span<const TreeStep> merges_after(int i) const;
  int num_results() const { return num_results_; }
  /// The largest number of slots in use at one time: the results so far plus a logarithm of the subtree in
  /// progress.
  int peak_slots() const { return peak_slots_; }

 private:
  std::vector<int> leaf_slots_, first_merge_;
  std::vector<TreeStep> merges_;
  int num_results_ = 0, peak_slots_ = 0;
};

}  // namespace lockstep
