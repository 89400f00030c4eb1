// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// From the configuration's list of layers to a Graph.
#include "core/named_options.h"
#include "model/graph.h"
#include "model/layer_table.h"

namespace lockstep {

namespace {

/// What every layer takes beside its own options.
constexpr ParamSpec kCommonTable[] = {
    {"name", ParamType::string, "null", "", "name of the layer and first part of its variables' names; the default is its kind and a number"},
    {"inputs", ParamType::strings, "null", "", "names of the layers that it reads; the default is the layer before it"},
};

}  // namespace

std::span<const ParamSpec> common_layer_table() { return kCommonTable; }

Graph graph_from_config(const Node& layers, const Shape& features) {
  LOCKSTEP_REQUIRE(layers.kind == Node::Kind::list && !layers.items.empty(), ErrorKind::config, "{}: model.layers must be a list of layers",
                   layers.where);
  Graph graph(features);
  std::map<std::string, int> count;
  for (const Node& item : layers.items) {
    const NamedOptions named = named_options(item, "layer");
    const LayerEntry& entry = find_entry(layer_table(), named, "layer");
    std::vector<ParamSpec> table(entry.table.begin(), entry.table.end());
    table.insert(table.end(), std::begin(kCommonTable), std::end(kCommonTable));
    const Params params(named.options, table, "layer " + named.name);
    const int number = ++count[named.name];
    std::string name = params.has("name") ? params.string("name") : fmt::format("{}{}", named.name, number);
    LOCKSTEP_REQUIRE(!name.empty() && name.find_first_of(" \t\n") == std::string::npos && name.front() != '/', ErrorKind::config,
                     "{}: '{}' is not a layer name: it must not be empty, hold blanks or begin with '/'", params.where("name"), name);
    graph.add(entry.make(std::move(name), params), params.has("inputs") ? params.strings("inputs") : std::vector<std::string>{}, named.where);
  }
  return graph;
}

}  // namespace lockstep
