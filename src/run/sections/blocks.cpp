// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/sections/blocks.h"

#include <fmt/format.h>

#include <algorithm>

#include "config/error_text.h"
#include "config/named_options.h"
#include "config/yaml_node.h"
#include "core/name_list.h"
#include "core/scalar.h"
#include "model/layer_table.h"
#include "run/sections/block_values.h"
#include "run/sections/built_in_nets.h"

namespace lockstep {

namespace {

constexpr std::string_view kRepeat = "repeat";
constexpr std::size_t kMostLayers = 10000;
constexpr int kDeepest = 16;                   ///< blocks and repeats in each other
constexpr std::int64_t kMostRounds = 100'000;  ///< of all repeats together, also of those without layers

Error mistake(const Node& at, std::string what, std::string advice = {}) {
  return Error(ErrorKind::config, std::move(what), at.overridden.empty() ? at.where : at.overridden,
               std::move(advice));
}

/// Takes an option out of a map; a null node if it is not there.
Node take(Node& map, std::string_view key) {
  Node value;
  for (std::size_t i = 0; i < map.entries.size(); ++i)
    if (map.entries[i].first == key) {
      value = std::move(map.entries[i].second);
      map.entries.erase(map.entries.begin() + static_cast<std::ptrdiff_t>(i));
      if (i < map.entry_where.size())
        map.entry_where.erase(map.entry_where.begin() + static_cast<std::ptrdiff_t>(i));
      break;
    }
  return value;
}

void put(Node& map, std::string key, Node value) {
  map.kind = Node::Kind::map;
  map.entry_where.resize(map.entries.size(), map.where);
  map.entry_where.insert(map.entry_where.begin(), value.where.empty() ? map.where : value.where);
  map.entries.emplace(map.entries.begin(), std::move(key), std::move(value));
}

bool is_layer(std::string_view kind) { return layer_table().find(kind) != nullptr; }

struct Block {
  Node parameters, layers;
};

Block block_from(const std::string& name, Node definition) {
  if (definition.kind != Node::Kind::map)
    throw mistake(definition, fmt::format("block {} is not a map", name),
                  "Write `parameters: {filters: null}` and `layers: [...]` below it.");
  Block block{take(definition, "parameters"), take(definition, "layers")};
  if (!definition.entries.empty())
    throw mistake(definition.entries.front().second,
                  fmt::format("block {}: unknown key '{}'", name, definition.entries.front().first),
                  "A block has `parameters` and `layers`.");
  if (!is_null(block.parameters) && block.parameters.kind != Node::Kind::map)
    throw mistake(block.parameters, fmt::format("block {}: parameters is not a map", name),
                  "Write {filters: null, stride: 1}; null: the parameter must be given.");
  for (const auto& [parameter, value] : block.parameters.entries)
    if (parameter == "name" || parameter == "inputs" || parameter == "trainable" || parameter == "recompute")
      throw mistake(value, fmt::format("block {}: no parameter can be called {}", name, parameter),
                    "Every block takes name, inputs, trainable and recompute.");
  if (block.layers.kind != Node::Kind::list || block.layers.items.empty())
    throw mistake(definition, fmt::format("block {} has no list of layers", name));
  return block;
}

class Expansion {
 public:
  explicit Expansion(const Node* blocks) {
    if (blocks == nullptr || is_null(*blocks)) return;
    if (blocks->kind != Node::Kind::map)
      throw mistake(*blocks, "model.blocks is not a map", "Write a name and a definition for each block.");
    for (const auto& [name, definition] : blocks->entries) {
      if (is_layer(name) || name == kRepeat)
        throw mistake(definition, fmt::format("a block cannot be called {}: that is a layer", name));
      blocks_.emplace(name, block_from(name, definition));
    }
  }

  bool has_work(const Node& layers) {
    return std::ranges::any_of(layers.items, [&](const Node& item) {
      if (item.kind != Node::Kind::scalar && (item.kind != Node::Kind::map || item.entries.size() != 1))
        return false;
      const std::string kind = named_options(item, "layer").name;
      return kind == kRepeat || find_block(kind) != nullptr;
    });
  }

  Node layers(const Node& list) {
    Scope top;
    expand(list, top);
    Node all;
    all.kind = Node::Kind::list;
    all.where = list.where;
    all.items = std::move(layers_);
    return all;
  }

  /// The layer of which a block, a repeat or a layer of this name is the output; else `name`.
  std::string output(const std::string& name) const {
    const auto found = outputs_.find(name);
    return found == outputs_.end() ? name : found->second;
  }

 private:
  /// The layers of one list: of the model, of a block, or of one round of a repeat.
  struct Scope {
    std::string prefix = {};
    const Scope* outer = nullptr;  ///< whose names are known too; null in a block
    BlockValues values = {};
    std::vector<std::string> inputs = {};  ///< what `input`, `input2`, ... stand for
    bool frozen = false;
    std::string segment = {};  ///< the layers' option recompute; empty: they have none
    int depth = 0;
    std::map<std::string, int> count = {};
  };

  const Block* find_block(const std::string& name) {
    if (const auto found = blocks_.find(name); found != blocks_.end()) return &found->second;
    for (const BuiltInNet& net : built_in_nets()) {
      if (net.name != name || is_layer(name)) continue;
      const std::string source = "built-in " + name;
      keep_source(source, net.yaml);
      Block block = block_from(name, parse_yaml(net.yaml, source));
      if (!net.fixed.empty())
        for (const auto& [parameter, value] : parse_yaml(net.fixed, source).entries)
          std::ranges::find(block.parameters.entries, parameter, &std::pair<std::string, Node>::first)
              ->second = value;
      return &blocks_.emplace(name, std::move(block)).first->second;
    }
    return nullptr;
  }

  void expand(const Node& list, Scope& scope) {
    if (scope.depth > kDeepest)
      throw mistake(list, fmt::format("more than {} blocks in each other", kDeepest),
                    "A block cannot contain itself.");
    for (const Node& item : list.items) {
      // A repeat's layers have values of their own.
      const bool repeats =
          item.kind == Node::Kind::map && item.entries.size() == 1 && item.entries.front().first == kRepeat;
      const Node node = scope.depth == 0 || repeats ? item : with_values(item, scope.values);
      const NamedOptions named = named_options(node, "layer");
      if (repeats)
        expand_repeat(named, scope);
      else if (const Block* block = find_block(named.name))
        expand_block(named, *block, scope);
      else
        add_layer(named, scope);
    }
  }

  static std::string numbered(const std::string& kind, Scope& scope) {
    const int number = ++scope.count["block " + kind];
    return number == 1 ? kind : fmt::format("{}_{}", kind, number);
  }

  static std::string name_of(Node& options, const std::string& otherwise) {
    const Node name = take(options, "name");
    if (is_null(name)) return otherwise;
    if (name.kind != Node::Kind::scalar) throw mistake(name, "name is not a text");
    return name.text;
  }

  static bool take_flag(Node& options, std::string_view key, bool otherwise) {
    const Node flag = take(options, key);
    if (is_null(flag)) return otherwise;
    if (flag.text != "true" && flag.text != "false")
      throw mistake(flag, fmt::format("{} is true or false", key));
    return flag.text == "true";
  }

  /// The layer that `name` means in this scope.
  std::string resolved(const std::string& name, const Scope& scope) const {
    const std::size_t colon = name.rfind(':');
    for (const Scope* s = &scope; s != nullptr; s = s->outer) {
      if (const auto found = outputs_.find(s->prefix + name); found != outputs_.end()) return found->second;
      if (colon != std::string::npos)
        if (const auto found = outputs_.find(s->prefix + name.substr(0, colon)); found != outputs_.end())
          return found->second + name.substr(colon);
      for (std::size_t i = 0; i < s->inputs.size(); ++i)
        if (name == (i == 0 ? std::string("input") : fmt::format("input{}", i + 1))) return s->inputs[i];
    }
    return name;
  }

  std::vector<std::string> inputs_of(Node& options, const Scope& scope) {
    const Node given = take(options, "inputs");
    std::vector<std::string> inputs;
    if (is_null(given)) return inputs;
    if (given.kind == Node::Kind::scalar) return {resolved(given.text, scope)};
    for (const Node& input : given.items) {
      if (input.kind != Node::Kind::scalar) throw mistake(input, "an input is not a name");
      inputs.push_back(resolved(input.text, scope));
    }
    return inputs;
  }

  void note_output(const std::string& name, const Node& at) {
    if (!outputs_.emplace(name, last_).second)
      throw mistake(at, fmt::format("two layers or blocks are named '{}'", name));
  }

  void add_layer(const NamedOptions& named, Scope& scope) {
    if (layers_.size() >= kMostLayers)
      throw mistake(named.options, fmt::format("more than {} layers", kMostLayers));
    Node options = named.options;
    const std::string otherwise = fmt::format("{}{}", named.name, ++scope.count[named.name]);
    Node item;
    item.where = named.where;
    if (options.kind == Node::Kind::map || is_null(options)) {
      const std::string name = scope.prefix + name_of(options, otherwise);
      const bool takes_inputs = options.find("inputs") != nullptr;
      std::vector<std::string> inputs = inputs_of(options, scope);
      if (!takes_inputs && !pending_.empty()) inputs = {pending_};
      if (const Node shared = take(options, "shared_with"); !is_null(shared))
        put(options, "shared_with", Node::scalar(resolved(shared.text, scope), shared.where));
      if (scope.frozen && options.find("trainable") == nullptr)
        put(options, "trainable", Node::scalar("false", named.where));
      if (!scope.segment.empty() && options.find("recompute") == nullptr)
        put(options, "recompute", Node::scalar(scope.segment, named.where));
      if (!inputs.empty()) {
        Node list;
        list.kind = Node::Kind::list;
        list.where = named.where;
        for (const std::string& input : inputs) list.items.push_back(Node::scalar(input, named.where));
        put(options, "inputs", std::move(list));
      }
      put(options, "name", Node::scalar(name, named.where));
      last_ = name;
      note_output(name, item);
    }
    pending_.clear();
    put(item, named.name, std::move(options));
    layers_.push_back(std::move(item));
  }

  void expand_block(const NamedOptions& named, const Block& block, Scope& scope) {
    Node options = named.options;
    if (options.kind != Node::Kind::map && !is_null(options))
      throw mistake(options, fmt::format("block {} takes a map of parameters", named.name));
    Node at;
    at.where = named.where;
    const std::string name = name_of(options, numbered(named.name, scope));
    const bool trainable = take_flag(options, "trainable", true),
               recompute = take_flag(options, "recompute", false);
    Scope inner{.prefix = scope.prefix + name + "/",
                .inputs = inputs_of(options, scope),
                .frozen = scope.frozen || !trainable,
                .segment = scope.segment,
                .depth = scope.depth + 1};
    if (recompute && inner.segment.empty()) inner.segment = scope.prefix + name;
    std::vector<std::string> known;
    for (const auto& [parameter, fallback] : block.parameters.entries) {
      known.push_back(parameter);
      const bool given = options.find(parameter) != nullptr;
      if (!given && is_null(fallback))
        throw mistake(at, fmt::format("block {} needs {}", named.name, parameter),
                      fmt::format("Write {}: {{{}: ...}}.", named.name, parameter));
      Node value = take(options, parameter);
      inner.values.emplace(parameter, given ? std::move(value) : fallback);
    }
    if (!options.entries.empty()) {
      const std::string& unknown = options.entries.front().first;
      std::vector<std::string_view> names(known.begin(), known.end());
      const std::string suggestion = nearest(unknown, names);
      at.where = options.entry_where.empty() ? at.where : options.entry_where.front();
      throw mistake(at, fmt::format("block {}: unknown parameter '{}'", named.name, unknown),
                    suggestion.empty() ? fmt::format("It has {}, name, inputs, trainable, recompute.",
                                                     known.empty() ? "none" : name_list(known))
                                       : fmt::format("Did you mean '{}'?", suggestion));
    }
    if (inner.inputs.empty())
      inner.inputs = {last_};
    else
      pending_ = last_ = inner.inputs.front();
    const std::size_t before = layers_.size();
    expand(block.layers, inner);
    if (layers_.size() == before) throw mistake(at, fmt::format("block {} has no layers here", named.name));
    note_output(scope.prefix + name, at);
  }

  void expand_repeat(const NamedOptions& named, Scope& scope) {
    Node options = named.options, at;
    at.where = named.where;
    const Node layers = take(options, "layers");
    if (scope.depth > 0) options = with_values(options, scope.values);
    const std::string name = name_of(options, numbered(named.name, scope));
    const Node times = take(options, "times"), index = take(options, "index");
    const bool recompute = take_flag(options, "recompute", false);
    if (!options.entries.empty())
      throw mistake(options.entries.front().second,
                    fmt::format("repeat: unknown option '{}'", options.entries.front().first),
                    "It takes times, layers, name, index and recompute.");
    if (is_null(times) || layers.kind != Node::Kind::list)
      throw mistake(at, "repeat needs times and layers", "Write {times: 3, layers: [...]}.");
    const std::int64_t rounds = whole_number(times, "times", 0, static_cast<std::int64_t>(kMostLayers));
    for (std::int64_t i = 1; i <= rounds; ++i) {
      if (++rounds_ > kMostRounds)
        throw mistake(at, fmt::format("more than {} rounds of repeats", kMostRounds));
      Scope inner{.prefix = fmt::format("{}{}/{}/", scope.prefix, name, i),
                  .outer = &scope,
                  .values = scope.values,
                  .inputs = {last_},
                  .frozen = scope.frozen,
                  .segment = scope.segment,
                  .depth = scope.depth + 1};
      if (recompute && inner.segment.empty()) inner.segment = fmt::format("{}{}/{}", scope.prefix, name, i);
      inner.values.insert_or_assign(is_null(index) ? "i" : index.text,
                                    Node::scalar(std::to_string(i), at.where));
      expand(layers, inner);
    }
    note_output(scope.prefix + name, at);
  }

  std::map<std::string, Block> blocks_;
  std::vector<Node> layers_;
  std::map<std::string, std::string> outputs_;  ///< by full name of a layer, block or repeat: its last layer
  std::int64_t rounds_ = 0;
  std::string last_ = "features";
  std::string pending_;  ///< what the next layer reads if it names no inputs; empty: the layer before it
};

}  // namespace

std::vector<std::string> block_names(const Node& model) {
  std::vector<std::string> names;
  if (const Node* blocks = model.find("blocks"); blocks != nullptr)
    for (const auto& [name, definition] : blocks->entries) names.push_back(name);
  names.emplace_back(kRepeat);
  for (const BuiltInNet& net : built_in_nets()) names.emplace_back(net.name);
  return names;
}

Node with_expanded_blocks(const Node& model) {
  const Node* layers = model.find("layers");
  if (model.kind != Node::Kind::map || layers == nullptr || layers->kind != Node::Kind::list) return model;
  Expansion expansion(model.find("blocks"));
  if (!expansion.has_work(*layers)) return model;
  Node expanded = model;
  for (auto& [key, value] : expanded.entries)
    if (key == "layers") value = expansion.layers(*layers);
  for (auto& [key, value] : expanded.entries)
    if (key == "heads" && value.kind == Node::Kind::list)
      for (Node& head : value.items)
        for (auto& [option, text] : head.entries)
          if (option == "output" && text.kind == Node::Kind::scalar) text.text = expansion.output(text.text);
  return expanded;
}

}  // namespace lockstep
