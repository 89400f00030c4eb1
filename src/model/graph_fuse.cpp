// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Fusion: a relu into the layer before it, and an addition into a batch_norm before it, if no other layer
// reads the value in between.
#include <algorithm>

#include "model/graph.h"

namespace lockstep {

bool Graph::only_consumer(int producer, int consumer) const {
  if (nodes_[static_cast<std::size_t>(producer)].outputs.size() > 1 ||
      std::ranges::find(outputs_, producer, &Source::node) != outputs_.end())
    return false;
  const std::vector<int>& readers = readers_[static_cast<std::size_t>(producer)];
  return std::ranges::all_of(readers, [&](int reader) { return reader == consumer; });
}

void Graph::fuse() {
  for (int i = 0; i < static_cast<int>(nodes_.size()); ++i) {
    Node& node = nodes_[static_cast<std::size_t>(i)];
    const Fusible fusible = node.layer->traits().fusible;
    if (fusible == Fusible::addition) fuse_addition(i);
    if (fusible != Fusible::relu || node.inputs[0].node < 0 || !only_consumer(node.inputs[0].node, i))
      continue;
    const Node& before = nodes_[static_cast<std::size_t>(node.inputs[0].node)];
    const int owner = before.fused_into >= 0 ? before.fused_into : node.inputs[0].node;
    if (nodes_[static_cast<std::size_t>(owner)].layer->fuse(Fusible::relu)) node.fused_into = owner;
  }
}

// An addition is fused into the operand that is computed later; the other operand is ready by then.
void Graph::fuse_addition(int addition) {
  Node& node = nodes_[static_cast<std::size_t>(addition)];
  const Source later = node.inputs[0].node > node.inputs[1].node ? node.inputs[0] : node.inputs[1];
  const Source other = later == node.inputs[0] ? node.inputs[1] : node.inputs[0];
  if (later.node < 0 || later.node == other.node || !only_consumer(later.node, addition)) return;
  Node& operand = nodes_[static_cast<std::size_t>(later.node)];
  if (operand.fused_into >= 0 || !operand.layer->fuse(Fusible::addition)) return;
  operand.inputs.push_back(other);
  if (other.node >= 0) readers_[static_cast<std::size_t>(other.node)].push_back(later.node);
  node.fused_into = later.node;
}

}  // namespace lockstep
