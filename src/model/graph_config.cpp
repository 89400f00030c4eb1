// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Makes a Graph from the configuration's list of layers.
#include "config/named_options.h"
#include "config/option.h"
#include "model/graph.h"
#include "model/layer_name.h"
#include "model/layer_table.h"

namespace lockstep {

namespace {

/// The options that every layer takes.
struct Common {
  std::optional<std::string> name, shared_with;
  std::optional<std::vector<std::string>> inputs;
  bool trainable = true;
  std::optional<std::string> recompute;
};
constexpr ParamSpec kCommonTable[] = {
    option<&Common::name>(
        "name", "null", {},
        "name of the layer and first part of its variables' names; the default is its kind and a number"),
    option<&Common::inputs>("inputs", "null", {},
                            "names of the layers that it reads; the default is the layer before it"),
    option<&Common::shared_with>(
        "shared_with", "null", {},
        "an earlier layer of the same kind whose variables it uses, as in a siamese net; of tied_dense: an "
        "embedding"),
    option<&Common::trainable>("trainable", "true", {},
                               "false: the layer is frozen: its variables keep their values, and batch_norm "
                               "normalises with its moving "
                               "statistics"),
    option<&Common::recompute>(
        "recompute", "null", {},
        "a name: layers with the same one do not keep their activations for the backward pass, but compute "
        "them once more. A block or a repeat takes true instead. See train.recompute",
        Change::free),
};

const LayerEntry& find_layer(const NamedOptions& named, std::span<const std::string> other_names) {
  if (const LayerEntry* const found = layer_table().find(named.name)) return *found;
  std::vector<std::string_view> known = layer_table().names();
  known.insert(known.end(), other_names.begin(), other_names.end());
  throw_unknown_name(named, "layer", known);
}

/// `number`: of the layer among those of its kind, from 1.
LayerDraft draft(const NamedOptions& named, const LayerEntry& entry, int number, ErrorCollector& mistakes) {
  std::vector<ParamSpec> table(entry.table.begin(), entry.table.end());
  table.insert(table.end(), std::begin(kCommonTable), std::end(kCommonTable));
  const Params params(named.options, table, "layer " + named.name, mistakes);
  const auto common = params.as<Common>();
  std::string name = common.name.value_or(fmt::format("{}{}", named.name, number));
  if (const std::string wrong = wrong_in_layer_name(name); !wrong.empty())
    throw params.error(option_name<&Common::name>(params),
                       fmt::format("'{}' is not a layer name: {}", printable(name), wrong),
                       std::string(kLayerNameRule));
  return {entry.create(std::move(name), params),
          common.inputs.value_or(std::vector<std::string>{}),
          named.options.overridden.empty() ? named.where : named.options.overridden,
          common.shared_with.value_or(""),
          common.trainable,
          common.recompute.value_or("")};
}

}  // namespace

std::span<const ParamSpec> common_layer_table() { return kCommonTable; }

std::vector<LayerDraft> layers_from_config(const Node& layers, std::span<const std::string> other_names) {
  if (layers.kind != Node::Kind::list || layers.items.empty())
    throw Error(ErrorKind::config, "model.layers must be a list of layers", layers.where);
  std::vector<LayerDraft> drafts;
  std::map<std::string, int> count;
  ErrorCollector mistakes;
  for (const Node& item : layers.items)
    mistakes.attempt([&] {
      const NamedOptions named = named_options(item, "layer");
      drafts.push_back(draft(named, find_layer(named, other_names), ++count[named.name], mistakes));
    });
  mistakes.throw_if_any();
  return drafts;
}

namespace {
Graph with_layers(Graph graph, const Node& layers) {
  for (LayerDraft& draft : layers_from_config(layers))
    graph.add(std::move(draft.layer), std::move(draft.inputs), draft.where, draft.shared_with,
              draft.trainable, draft.recompute);
  return graph;
}
}  // namespace

Graph graph_from_config(const Node& layers, const Shape& features) {
  return with_layers(Graph(features), layers);
}
Graph graph_from_config(const Node& layers, std::span<const NamedShape> inputs) {
  return with_layers(Graph(inputs), layers);
}

}  // namespace lockstep
