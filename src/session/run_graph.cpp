// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/run_graph.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/graph_inputs.h"

namespace lockstep {

namespace {

constexpr const char* kFeatures = "features";

/// Of a batch: the number of samples is any.
std::vector<std::int64_t> extents_of(const Shape& shape) {
  std::vector<std::int64_t> extents = {-1};
  extents.insert(extents.end(), shape.extents().begin(), shape.extents().end());
  return extents;
}

std::string input_name(const Graph& graph, Graph::Source source) {
  if (source.node < 0) return kFeatures;
  const std::string& name = graph.nodes()[static_cast<std::size_t>(source.node)].layer->name();
  return source.output == 0 ? name : fmt::format("{}:{}", name, source.output);
}

/// A layer may have the name.
std::string free_name(const Graph& graph, std::string name) {
  const auto is_layer = [&](const Graph::Node& node) { return node.layer->name() == name; };
  while (std::ranges::any_of(graph.nodes(), is_layer)) name += "_";
  return name;
}

}  // namespace

std::vector<GraphNode> graph_nodes(const Graph& graph, const std::string& device) {
  std::vector<GraphNode> nodes = {
      {.name = kFeatures, .op = "Input", .output_shapes = {extents_of(graph.features())}}};
  for (int i = 0; i < static_cast<int>(graph.nodes().size()); ++i) {
    const Graph::Node& from = graph.nodes()[static_cast<std::size_t>(i)];
    const LayerTraits traits = from.layer->traits();
    GraphNode to{.name = from.layer->name(), .op = traits.kind, .device = device};
    for (const Graph::Source input : written_inputs(graph, i)) to.inputs.push_back(input_name(graph, input));
    for (const Shape& shape : from.outputs) to.output_shapes.push_back(extents_of(shape));
    to.numbers.emplace_back("parameters", from.parameters);
    if (from.frozen_parameters > 0) to.numbers.emplace_back("frozen_parameters", from.frozen_parameters);
    to.numbers.emplace_back("flops_per_sample", static_cast<std::int64_t>(traits.flops_per_sample));
    const auto name_of = [&](int node) {
      return graph.nodes()[static_cast<std::size_t>(node)].layer->name();
    };
    if (from.fused_into >= 0) to.texts.emplace_back("computed_by", name_of(from.fused_into));
    if (from.shared_with >= 0) to.texts.emplace_back("shares_variables_of", name_of(from.shared_with));
    if (!from.trainable) to.texts.emplace_back("trainable", "false");
    const auto* const collective = dynamic_cast<const CollectiveLayer*>(from.layer.get());
    if (collective != nullptr && collective->synchronises()) {
      const int group = collective->collective_traits().group_size;
      GraphNode sync{.name = to.name + "_synchronisation",
                     .op = "SumOverMicroshards",
                     .inputs = to.inputs,
                     .device = device};
      sync.numbers.emplace_back("group_size", group);
      to.inputs.push_back("^" + sync.name);
      nodes.push_back(std::move(sync));
    }
    nodes.push_back(std::move(to));
  }
  return nodes;
}

std::vector<GraphNode> loss_nodes(const Graph& graph, const Heads& heads, const std::string& device) {
  const std::string total = free_name(graph, "loss");
  std::vector<GraphNode> nodes;
  GraphNode sum{.name = total + "/sum", .op = "Sum", .inputs = {}, .device = device, .output_shapes = {{}}};
  for (int i = 0; i < heads.size(); ++i) {
    const Head& head = heads[i];
    GraphNode node{.name = head.name.empty() ? total : fmt::format("{}/{}", total, head.name),
                   .op = "Loss",
                   .inputs = {input_name(graph, graph.outputs()[static_cast<std::size_t>(i)])},
                   .device = device,
                   .output_shapes = {{}}};
    if (heads.size() > 1) node.texts.emplace_back("weight", fmt::format("{:g}", head.weight));
    sum.inputs.push_back(node.name);
    nodes.push_back(std::move(node));
  }
  if (heads.size() > 1) nodes.push_back(std::move(sum));
  return nodes;
}

std::vector<GraphNode> update_nodes(const Graph& graph, const GraphNode& loss, const UpdateText& text,
                                    const std::string& device) {
  std::int64_t trained = 0;
  for (const Graph::Node& node : graph.nodes()) trained += node.parameters;
  GraphNode sum{.name = free_name(graph, "gradients"),
                .op = "SumOverMicroshards",
                .inputs = {loss.name},
                .device = device};
  sum.numbers.emplace_back("parameters", trained);
  if (!text.compression.empty()) sum.texts.emplace_back("compression", text.compression);
  if (!text.clips.empty()) sum.texts.emplace_back("clipped_by", text.clips);
  GraphNode update{
      .name = free_name(graph, "update"), .op = text.optimizer, .inputs = {sum.name}, .device = device};
  return {std::move(sum), std::move(update)};
}

}  // namespace lockstep
