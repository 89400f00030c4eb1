// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "view/report/network_view.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "io/checkpoint_store.h"
#include "model/graph.h"
#include "model/graph_inputs.h"
#include "model/heads.h"

namespace lockstep::report {

namespace {

std::string shapes_text(std::span<const Shape> shapes) {
  std::vector<std::string> texts;
  for (const Shape& shape : shapes) texts.push_back(shape.to_string());
  return fmt::format("{}", fmt::join(texts, ", "));
}

void from_graph(const OpenedRun& opened, NetworkView& view) {
  const Model& model = *opened.model;
  const Dataset& data = opened.data.first();
  for (const NamedShape& input : data.input_shapes())
    view.inputs.push_back({input.name.empty() ? "features" : input.name, input.shape.to_string()});
  const bool named = view.inputs.size() > 1 || !data.input_shapes().front().name.empty();
  view.parameters = model.variables->num_parameters() + model.variables->num_frozen_parameters();
  view.flops = model.graph->flops_per_sample();
  const std::span<const Graph::Node> nodes = model.graph->nodes();
  for (int i = 0; i < static_cast<int>(nodes.size()); ++i) {
    const Graph::Node& node = nodes[static_cast<std::size_t>(i)];
    NetworkLayer layer{
        .name = node.layer->name(), .kind = node.layer->kind(), .shape = shapes_text(node.outputs)};
    layer.is_entry = named && i == 0;
    for (const Graph::Source& source : written_inputs(*model.graph, i))
      layer.inputs.push_back(named && source.node == 0 ? -1 - source.output : source.node);
    layer.shared_with = node.shared_with;
    layer.fused = node.fused_into >= 0;
    layer.parameters = node.parameters + node.frozen_parameters;
    layer.frozen = node.frozen_parameters;
    layer.flops = node.layer->traits().flops_per_sample;
    view.layers.push_back(std::move(layer));
  }
  for (int i = 0; i < model.heads->size(); ++i)
    view.heads.push_back({(*model.heads)[i].name, model.graph->outputs()[static_cast<std::size_t>(i)].node});
}

/// Numbers of parameters by layer, of the newest checkpoint.
void add_parameters(NetworkView& view, const std::string& run_dir) {
  try {
    const std::optional<CheckpointFile> newest = CheckpointStore(run_dir, 0).open_newest();
    if (!newest) return;
    const CheckpointFile& file = *newest;
    view.parameters = 0;
    for (NetworkLayer& layer : view.layers) layer.parameters = 0;
    for (const CheckpointEntry& entry : file.entries()) {
      constexpr std::string_view kFolder = "variables/";
      if (!entry.path.starts_with(kFolder)) continue;
      const std::string name = entry.path.substr(kFolder.size());
      view.parameters += entry.shape.num_elements();
      for (NetworkLayer& layer : view.layers)
        if (name.starts_with(layer.name + "/")) layer.parameters += entry.shape.num_elements();
    }
  } catch (const Error&) {
    view.parameters = -1;  // the section of checkpoints says what is wrong with it
  }
}

std::vector<std::string> names_of_inputs(const Config& config) {
  const Node* const data = config.root.find("data");
  const Node* const inputs = data != nullptr ? data->find("inputs") : nullptr;
  std::vector<std::string> names;
  if (inputs != nullptr)
    for (const auto& [name, input] : inputs->entries) names.push_back(name);
  return names;
}

void from_configuration(const Config& config, NetworkView& view) {
  const std::vector<std::string> inputs = names_of_inputs(config);
  for (const std::string& name : inputs) view.inputs.push_back({name, ""});
  const auto find = [&](const std::string& name) {
    if (const auto input = std::ranges::find(inputs, name); input != inputs.end())
      return -1 - static_cast<int>(input - inputs.begin());
    const auto found = std::ranges::find(view.layers, name.substr(0, name.find(':')), &NetworkLayer::name);
    return found == view.layers.end() ? -1 : static_cast<int>(found - view.layers.begin());
  };
  for (const LayerDraft& draft : layers_from_config(config.model.layers)) {
    NetworkLayer layer{.name = draft.layer->name(), .kind = draft.layer->kind(), .shape = {}};
    for (const std::string& input : draft.inputs) layer.inputs.push_back(find(input));
    if (draft.inputs.empty() && draft.layer->traits().takes_inputs)
      layer.inputs.push_back(static_cast<int>(view.layers.size()) - 1);
    if (!draft.shared_with.empty()) layer.shared_with = find(draft.shared_with);
    view.layers.push_back(std::move(layer));
  }
  for (const Head& head : heads_from_config(config.model.section))
    view.heads.push_back(
        {head.name, head.output.empty() ? static_cast<int>(view.layers.size()) - 1 : find(head.output)});
}

}  // namespace

NetworkView network_view(const OpenedRun& opened, const std::string& run_dir) {
  NetworkView view;
  try {
    if (opened.model) {
      from_graph(opened, view);
    } else if (opened.config) {
      view.problem = fmt::format(
          "No shapes and FLOPs: {}. Parameters are those of the newest checkpoint, with running statistics.",
          opened.problem);
      from_configuration(*opened.config, view);
      add_parameters(view, run_dir);
    } else {
      view.problem = fmt::format("No network: {}.", opened.problem);
    }
  } catch (const Error& error) {
    view.layers.clear();
    view.problem = fmt::format("No network: {}.", error.what_happened());
  }
  add_profile(view, run_dir);
  return view;
}

}  // namespace lockstep::report
