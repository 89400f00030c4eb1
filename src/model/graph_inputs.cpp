// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "model/graph_inputs.h"

#include <algorithm>

namespace lockstep {

std::span<const Graph::Source> written_inputs(const Graph& graph, int node) {
  const auto nodes = graph.nodes();
  const std::span<const Graph::Source> inputs = nodes[static_cast<std::size_t>(node)].inputs;
  const auto additions = static_cast<std::size_t>(std::ranges::count_if(nodes, [&](const Graph::Node& other) {
    return other.fused_into == node && other.layer->traits().fusible == Fusible::addition;
  }));
  return inputs.first(inputs.size() - additions);
}

}  // namespace lockstep
