// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "view/report/network_view.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "io/checkpoint_store.h"
#include "model/graph.h"

namespace lockstep::report {

namespace {

std::string shapes_text(std::span<const Shape> shapes) {
  std::vector<std::string> texts;
  for (const Shape& shape : shapes) texts.push_back(shape.to_string());
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string features_text(std::span<const NamedShape> inputs) {
  std::vector<std::string> texts;
  for (const NamedShape& input : inputs)
    texts.push_back(input.name.empty() ? input.shape.to_string()
                                       : fmt::format("{} {}", input.name, input.shape.to_string()));
  return fmt::format("{}", fmt::join(texts, ", "));
}

void from_graph(const OpenedRun& opened, NetworkView& view) {
  const Model& model = *opened.model;
  const Dataset& data = opened.data.first();
  view.features = features_text(data.input_shapes());
  view.parameters = model.variables->num_parameters() + model.variables->num_frozen_parameters();
  view.flops = model.graph->flops_per_sample();
  for (const Graph::Node& node : model.graph->nodes()) {
    NetworkLayer layer{
        .name = node.layer->name(), .kind = node.layer->kind(), .shape = shapes_text(node.outputs)};
    for (const Graph::Source& source : node.inputs) layer.inputs.push_back(source.node);
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
  const std::optional<std::int64_t> step = newest_checkpoint_step(run_dir);
  if (!step) return;
  try {
    const CheckpointFile file(CheckpointStore(run_dir, 0).path_of(*step));
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

void from_configuration(const Config& config, NetworkView& view) {
  const Node* layers =
      config.root.find("model") != nullptr ? config.root.find("model")->find("layers") : nullptr;
  LOCKSTEP_REQUIRE(layers != nullptr, ErrorKind::config, "the section model has no layers");
  for (const LayerDraft& draft : layers_from_config(*layers)) {
    NetworkLayer layer{.name = draft.layer->name(), .kind = draft.layer->kind(), .shape = {}};
    const auto find = [&](const std::string& name) {
      const auto found = std::ranges::find(view.layers, name.substr(0, name.find(':')), &NetworkLayer::name);
      return found == view.layers.end() ? -1 : static_cast<int>(found - view.layers.begin());
    };
    for (const std::string& input : draft.inputs) layer.inputs.push_back(find(input));
    if (draft.inputs.empty() && draft.layer->traits().takes_inputs)
      layer.inputs.push_back(static_cast<int>(view.layers.size()) - 1);
    if (!draft.shared_with.empty()) layer.shared_with = find(draft.shared_with);
    view.layers.push_back(std::move(layer));
  }
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
