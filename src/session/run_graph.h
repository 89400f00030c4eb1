// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The layers of a model as TensorBoard shows them: a node for each layer, with shapes, parameters and device;
// one for each input; and one where microshards synchronise (batch norm).
#pragma once

#include <string>
#include <vector>

#include "io/graph_summary.h"
#include "model/graph.h"

namespace lockstep {

/// `device` as in "/device:CPU:0". Call after Graph::finish().
std::vector<GraphNode> graph_nodes(const Graph& graph, const std::string& device);

}  // namespace lockstep
