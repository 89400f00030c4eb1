// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The layers of a model as TensorBoard shows them: a node for each layer, with shapes, parameters and device;
// one for each input; one where microshards synchronise (batch norm); and the losses.
#pragma once

#include <string>
#include <vector>

#include "io/graph_summary.h"
#include "model/graph.h"
#include "model/heads.h"

namespace lockstep {

/// `device` as in "/device:CPU:0". Call after Graph::finish().
std::vector<GraphNode> graph_nodes(const Graph& graph, const std::string& device);
/// A node for the loss of each head, and their sum if there are several. The graph has the heads' outputs.
std::vector<GraphNode> loss_nodes(const Graph& graph, const Heads& heads, const std::string& device);

}  // namespace lockstep
