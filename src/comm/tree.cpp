// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/tree.h"

#include <algorithm>

#include "core/error.h"
#include "core/range.h"

namespace lockstep {

namespace {

void collect(int node_first, int node_last, int first, int last, std::vector<Subtree>& found) {
  if (node_last <= first || last <= node_first) return;
  if (first <= node_first && node_last <= last) {
    found.push_back({node_first, node_last});
    return;
  }
  const int middle = node_first + tree_left_size(node_last - node_first);
  collect(node_first, middle, first, last, found);
  collect(middle, node_last, first, last, found);
}

}  // namespace

int tree_left_size(int n) {
  LOCKSTEP_CHECK(n >= 2, "a node of {} leaves has no children", n);
  int left = 1;
  while (left <= (n - 1) / 2) left *= 2;
  return left;
}

bool is_tree_node(int first, int last, int shards) {
  int node_first = 0, node_last = shards;
  while (node_first != first || node_last != last) {
    if (first < node_first || node_last < last || node_last - node_first <= 1) return false;
    const int middle = node_first + tree_left_size(node_last - node_first);
    if (last <= middle)
      node_last = middle;
    else
      node_first = middle;
  }
  return first < last;
}

std::vector<Subtree> maximal_subtrees(int first, int last, int shards) {
  LOCKSTEP_CHECK(0 <= first && first <= last && last <= shards, "leaves [{}, {}) of {}", first, last, shards);
  std::vector<Subtree> found;
  if (first < last) collect(0, shards, first, last, found);
  return found;
}

Range shards_of_rank(int rank, int ranks, int shards) { return part_of(shards, rank, ranks); }

int rank_of_shard(int shard, int ranks, int shards) {
  LOCKSTEP_CHECK(0 <= shard && shard < shards, "shard {} of {}", shard, shards);
  // The largest r with floor(r G / R) <= shard, that is r G < (shard + 1) R.
  return static_cast<int>(((std::int64_t{shard} + 1) * ranks - 1) / shards);
}

std::vector<Range> shards_of_all_ranks(int ranks, int shards) {
  std::vector<Range> all;
  all.reserve(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) all.push_back(shards_of_rank(rank, ranks, shards));
  return all;
}

TreePlan::TreePlan(int shards, std::span<const Range> ranges) {
  LOCKSTEP_CHECK(!ranges.empty());
  std::int64_t reached = ranges.front().first;
  for (const Range& range : ranges) {
    LOCKSTEP_CHECK(range.first == reached, "the ranges leave a gap: {} after {}", range.first, reached);
    reached = range.last;
    first_input_.push_back(static_cast<int>(inputs_.size()));
    const auto parts = maximal_subtrees(static_cast<int>(range.first), static_cast<int>(range.last), shards);
    inputs_.insert(inputs_.end(), parts.begin(), parts.end());
  }
  first_input_.push_back(static_cast<int>(inputs_.size()));
  outputs_ =
      maximal_subtrees(static_cast<int>(ranges.front().first), static_cast<int>(ranges.back().last), shards);
  int next = 0;
  for (const Subtree& output : outputs_)
    output_slots_.push_back(build(output.first, output.last, shards, next));
}

// Returns the slot that holds node [first, last) after the steps so far. `next` is the first unused input.
int TreePlan::build(int first, int last, int shards, int& next) {
  if (inputs_[static_cast<std::size_t>(next)] == Subtree{first, last}) return next++;
  const int middle = first + tree_left_size(last - first);
  const int into = build(first, middle, shards, next);
  const int from = build(middle, last, shards, next);
  steps_.push_back({into, from, last - first == shards, middle});
  return into;
}

CounterPlan::CounterPlan(int shards, Range leaves) {
  std::vector<Subtree> stack;
  for (int leaf = static_cast<int>(leaves.first); leaf < leaves.last; ++leaf) {
    leaf_slots_.push_back(static_cast<int>(stack.size()));
    first_merge_.push_back(static_cast<int>(merges_.size()));
    stack.push_back({leaf, leaf + 1});
    peak_slots_ = std::max(peak_slots_, static_cast<int>(stack.size()));
    while (stack.size() >= 2) {
      const Subtree left = stack[stack.size() - 2], right = stack.back();
      if (!is_tree_node(left.first, right.last, shards) ||
          tree_left_size(right.last - left.first) != left.size())
        break;
      const int top = static_cast<int>(stack.size()) - 1;
      merges_.push_back({top - 1, top, right.last - left.first == shards, right.first});
      stack.pop_back();
      stack.back().last = right.last;
    }
  }
  first_merge_.push_back(static_cast<int>(merges_.size()));
  num_results_ = static_cast<int>(stack.size());
}

std::span<const TreeStep> CounterPlan::merges_after(int i) const {
  const auto begin = static_cast<std::size_t>(first_merge_[static_cast<std::size_t>(i)]);
  const auto end = static_cast<std::size_t>(first_merge_[static_cast<std::size_t>(i) + 1]);
  return std::span<const TreeStep>(merges_).subspan(begin, end - begin);
}

}  // namespace lockstep
