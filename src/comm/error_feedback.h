// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Error feedback of a compressed sum: what the rounding of a node took away is added to that node in the next
// step (Seide et al., Interspeech 2014; Karimireddy et al., ICML 2019). With r(), which rounds to bfloat16:
//
//   x = left + right + residual        (of a leaf: x = gradient + residual)
//   node = r(x)                        what is sent and added
//   residual of the next step = x - r(x)
//
// Every node of the tree has a residual of its own for each element. It lies on the rank that computes the
// node there, and depends on the tree alone: the bits are the same on any number of ranks. A node is a number
// in the order of the leaves: leaf i is 2 i, the node whose right child begins with leaf m is 2 m - 1.
//
// A residual is kept as 16 bits, whose error is 2^-9 of it. Of an element that is not finite it is 0.
//
// Why nodes and not ranks keep residuals: elsewhere each rank keeps one for its own gradient, which depends
// on the number of ranks. ErrorFeedback is one address range of all nodes and elements, of which only the
// pages that a rank writes take memory, so no table says where a residual is; GradientReducer::node_parts()
// says who has which, for checkpoints. A step writes new residuals next to the old ones, and the update
// exchanges them: a step that is computed twice or left out begins with the same residuals. The price is 2 x
// leaves - 1 residuals per weight, twice 16 bits each, divided among the ranks: 8 leaves on 8 ranks take 7.5
// bytes per weight. Rows of sparse gradients have none: a row that a step does not touch has no node.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/half.h"
#include "core/range.h"

namespace lockstep {

class ErrorFeedback {
 public:
  /// Residuals of all nodes of the tree over `leaves`, `elements` each, initially 0. Memory is used only for
  /// what is written.
  ErrorFeedback(int leaves, std::int64_t elements);
  ~ErrorFeedback();
  ErrorFeedback(const ErrorFeedback&) = delete;
  ErrorFeedback& operator=(const ErrorFeedback&) = delete;

  static int num_nodes(int leaves) { return 2 * leaves - 1; }
  static int leaf(int number) { return 2 * number; }
  static int inner(int first_of_right) { return 2 * first_of_right - 1; }

  /// The sum of an inner node for elements [first, first + count): `into` is its left child, and then the
  /// node. `from` has been rounded. On the calling thread; others may work on other nodes and elements.
  void add(int node, std::int64_t first, std::int64_t count, float* into, const float* from);
  void add(int node, std::int64_t first, std::int64_t count, float* into, const BFloat16* from);
  /// Rounds a leaf: `values` is its gradient, and then the node.
  void round(int leaf_node, std::int64_t first, std::int64_t count, float* values);
  /// The step's sums are used: the next step's begin with what these have left. Without it they are computed
  /// once more from the same residuals.
  void keep();

  /// The residuals that the next sums begin with.
  void read(int node, Range elements, float* to) const;
  void write(int node, Range elements, const float* from);

  /// Bytes for each element of a node.
  static constexpr std::size_t kElementBytes = 2 * sizeof(BFloat16);

 private:
  std::int64_t at(int node, std::int64_t element) const { return node * stride_ + element; }

  std::int64_t stride_;
  std::size_t bytes_;
  BFloat16 *before_, *after_;  ///< of the last step that was kept, and of the present one
};

/// Elements of a node, and the rank that computes them.
struct NodePart {
  int node;
  Range elements;
  int rank;
};

/// The nodes at and below the partials of each rank, which it adds alone.
std::vector<NodePart> nodes_inside_ranks(int leaves, int ranks, std::int64_t elements);

}  // namespace lockstep
