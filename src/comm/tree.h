// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The one summation tree over G leaves (the shards of a global batch), as pure arithmetic: no communication,
// no data.
//
// A node over n leaves has the largest power of two below n in its left child. Floating-point addition
// commutes but does not associate; the tree fixes the association, so a sum has the same bits whoever
// computes which part of it. Vocabulary: a *partial* is the sum of one node (Subtree); the *maximal subtrees*
// of a leaf range are the biggest nodes that lie wholly inside it, in order; merging is always "right into
// left".
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/thread_pool.h"

namespace lockstep {

/// Leaves [first, last) that form one node of the tree.
struct Subtree {
  int first, last;
  int size() const { return last - first; }
  friend bool operator==(const Subtree&, const Subtree&) = default;
};

/// Leaves in the left child of a node of `n` >= 2 leaves: the largest power of two below n.
int tree_left_size(int n);
/// Whether leaves [first, last) are one node of the tree over `shards` leaves.
bool is_tree_node(int first, int last, int shards);
/// The maximal nodes inside [first, last), in order; empty for an empty range. At most 2 log2(shards) of
/// them.
std::vector<Subtree> maximal_subtrees(int first, int last, int shards);

/// Rank r of R owns the consecutive leaves [r G / R, (r + 1) G / R); empty for some ranks where R > G.
Range shards_of_rank(int rank, int ranks, int shards);
/// The rank that owns `shard`.
int rank_of_shard(int shard, int ranks, int shards);
/// shards_of_rank for every rank.
std::vector<Range> shards_of_all_ranks(int ranks, int shards);

/// "Add partial `from` into partial `into`": into is the left operand.
struct TreeStep {
  int into, from;
  friend bool operator==(const TreeStep&, const TreeStep&) = default;
};

/// How the partials of consecutive leaf ranges (of threads, of ranks) become the partials of their union:
/// computed once, run often, without allocation.
class TreePlan {
 public:
  TreePlan() = default;
  /// The inputs are the maximal subtrees of each range, in order; the ranges follow one another without gaps
  /// (empty ones are allowed).
  TreePlan(int shards, std::span<const Range> ranges);

  std::span<const Subtree> inputs() const { return inputs_; }
  /// Index of the first input of range `r`; first_input(number of ranges) is the number of inputs.
  int first_input(int r) const { return first_input_[static_cast<std::size_t>(r)]; }
  std::span<const TreeStep> steps() const { return steps_; }
  /// The maximal subtrees of the union, and the input that holds each of them after the steps.
  std::span<const Subtree> outputs() const { return outputs_; }
  int output_slot(int k) const { return output_slots_[static_cast<std::size_t>(k)]; }

 private:
  int build(int first, int last, int& next);

  std::vector<Subtree> inputs_, outputs_;
  std::vector<int> first_input_, output_slots_;
  std::vector<TreeStep> steps_;
};

/// Runs a plan: add(into, from) for every step, in order.
template <typename Add>
void tree_combine(const TreePlan& plan, Add&& add) {
  for (const TreeStep& step : plan.steps()) add(step.into, step.from);
}

/// A binary counter over the leaves of a range that are finished in order: leaf i goes to slot
/// `leaf_slot(i)`, then the top slots are merged. After the last leaf, slots 0 .. num_results() - 1 hold the
/// maximal subtrees of the range.
class CounterPlan {
 public:
  CounterPlan() = default;
  CounterPlan(int shards, Range leaves);

  int num_leaves() const { return static_cast<int>(leaf_slots_.size()); }
  /// `i` counts from the first leaf of the range.
  int leaf_slot(int i) const { return leaf_slots_[static_cast<std::size_t>(i)]; }
  std::span<const TreeStep> merges_after(int i) const;
  int num_results() const { return num_results_; }
  /// The most slots alive at one time: the results so far plus a logarithm of the subtree in progress.
  int peak_slots() const { return peak_slots_; }

 private:
  std::vector<int> leaf_slots_, first_merge_;
  std::vector<TreeStep> merges_;
  int num_results_ = 0, peak_slots_ = 0;
};

}  // namespace lockstep
