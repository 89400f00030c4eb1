// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Makes a Graph from the configuration's list of layers.
#include "core/named_options.h"
#include "model/graph.h"
#include "model/layer_table.h"

namespace lockstep {

namespace {

/// The options that every layer takes.
constexpr ParamSpec kCommonTable[] = {
    {"name", ParamType::string, "null", "",
     "name of the layer and first part of its variables' names; the default is its kind and a number"},
    {"inputs", ParamType::strings, "null", "",
     "names of the layers that it reads; the default is the layer before it"},
    {"shared_with", ParamType::string, "null", "",
     "an earlier layer of the same kind whose variables it uses, as in a siamese net"},
};

}  // namespace

std::span<const ParamSpec> common_layer_table() { return kCommonTable; }

std::vector<LayerDraft> layers_from_config(const Node& layers) {
  if (layers.kind != Node::Kind::list || layers.items.empty())
    throw Error(ErrorKind::config, "model.layers must be a list of layers", layers.where);
  std::vector<LayerDraft> drafts;
  std::map<std::string, int> count;
  for (const Node& item : layers.items) {
    const NamedOptions named = named_options(item, "layer");
    const LayerEntry& entry = find_entry(layer_table(), named, "layer");
    std::vector<ParamSpec> table(entry.table.begin(), entry.table.end());
    table.insert(table.end(), std::begin(kCommonTable), std::end(kCommonTable));
    const Params params(named.options, table, "layer " + named.name);
    const int number = ++count[named.name];
    std::string name = params.has("name") ? params.string("name") : fmt::format("{}{}", named.name, number);
    if (name.empty() || name.find_first_of(" \t\n") != std::string::npos || name.front() == '/' ||
        name.back() == '/')
      throw params.error("name", fmt::format("'{}' is not a layer name", name),
                         "A name is not empty, has no blanks, and neither begins nor ends with '/'.");
    drafts.push_back({entry.create(std::move(name), params),
                      params.has("inputs") ? params.strings("inputs") : std::vector<std::string>{},
                      named.where, params.has("shared_with") ? params.string("shared_with") : std::string{}});
  }
  return drafts;
}

Graph graph_from_config(const Node& layers, const Shape& features) {
  Graph graph(features);
  for (LayerDraft& draft : layers_from_config(layers))
    graph.add(std::move(draft.layer), std::move(draft.inputs), draft.where, draft.shared_with);
  return graph;
}

}  // namespace lockstep
