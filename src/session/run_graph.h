// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The layers of a model as TensorBoard shows them: a node for each layer, with shapes, parameters and device;
// one for each input; one where microshards synchronise (batch norm); the losses; and what follows the
// backward pass, with the sum over microshards.
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

struct UpdateText {
  std::string optimizer;         ///< "adam"
  std::string clips = {};        ///< "global_norm"; empty: gradients are not clipped
  std::string compression = {};  ///< in words; empty: gradients travel as float32
};
/// The sum of gradients over microshards, and the update. `loss`: the last of loss_nodes().
std::vector<GraphNode> update_nodes(const Graph& graph, const GraphNode& loss, const UpdateText& text,
                                    const std::string& device);

}  // namespace lockstep
