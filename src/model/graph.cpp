// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "model/graph.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_set>

#include "core/scalar.h"
#include "core/sizes.h"
#include "model/borrowing_layer.h"
#include "model/input_parts.h"
#include "model/layer_name.h"

namespace lockstep {

namespace {
const std::string kOutput = "a head's output";
constexpr std::size_t kMostLayers = 10'000;

/// The message of a layer's error, which names the layer.
std::string with_layer(const std::string& name, const std::string& what) {
  return what.starts_with("layer ") ? what : fmt::format("layer {}: {}", name, what);
}

/// A variable's name is a path in checkpoints, which cannot also be a group: "a/kernel" and "a/kernel/bias"
/// exclude each other.
void require_distinct_paths(std::span<const Graph::Node> nodes, const VariableStore& variables) {
  std::unordered_set<std::string_view> names;
  for (const Variable& variable : variables.variables()) names.insert(variable.name);
  for (const Graph::Node& node : nodes)
    for (int id = node.first_variable; id < node.last_variable; ++id) {
      const std::string_view name = variables[static_cast<VariableId>(id)].name;
      for (std::size_t end = name.find('/'); end != std::string_view::npos; end = name.find('/', end + 1))
        if (names.contains(name.substr(0, end)))
          throw Error(ErrorKind::config,
                      fmt::format("layer {}: its variable {} lies below another layer's variable {}",
                                  node.layer->name(), name, name.substr(0, end)),
                      node.where, "Give one of the two layers another name.");
    }
}
}  // namespace

Graph::Graph(Shape features) : features_(features) {}

Graph::Graph(std::span<const NamedShape> inputs) : Graph(joined_shape(inputs)) {
  for (const NamedShape& input : inputs)
    if (const std::string wrong = wrong_in_layer_name(input.name); !wrong.empty() || input.name == "features")
      throw Error(ErrorKind::config,
                  fmt::format("'{}' is not a name for an input: {}", printable(input.name),
                              wrong.empty() ? "it means all inputs" : wrong),
                  "", std::string(kLayerNameRule));
  add(make_input_parts({inputs.begin(), inputs.end()}), {"features"});
  for (const NamedShape& input : inputs) inputs_.push_back(input.name);
}

int Graph::find(const std::string& name) const {
  const auto found = node_of_name_.find(name);
  return found == node_of_name_.end() ? -1 : found->second;
}

Graph::Source Graph::source(const std::string& input, const std::string& reader,
                            const std::string& where) const {
  if (const auto found = std::ranges::find(inputs_, input); found != inputs_.end())
    return {0, static_cast<int>(found - inputs_.begin())};
  if (input == "features" && inputs_.empty()) return {-1, 0};
  if (const int node = find(input); node >= 0) return {node, 0};
  const std::size_t colon = input.rfind(':');
  if (const int node = colon == std::string::npos ? -1 : find(input.substr(0, colon)); node >= 0) {
    const auto output = parse_integer(input.substr(colon + 1));
    const auto count = static_cast<std::int64_t>(nodes_[static_cast<std::size_t>(node)].outputs.size());
    if (output && *output >= 0 && *output < count) return {node, static_cast<int>(*output)};
    throw Error(
        ErrorKind::config,
        fmt::format("{}: '{}' names no output: {} has {}", reader, input, input.substr(0, colon), count),
        where);
  }
  std::vector<std::string_view> known(inputs_.begin(), inputs_.end());
  if (known.empty()) known.push_back("features");
  for (const Node& other : nodes_) known.push_back(other.layer->name());
  const std::string suggestion = nearest(input, known);
  throw Error(
      ErrorKind::config,
      fmt::format("{}: there is no layer '{}'{}", reader, input, reader == kOutput ? "" : " before it"),
      where,
      !suggestion.empty() ? fmt::format("Did you mean '{}'?", suggestion)
      : inputs_.empty()   ? "Inputs are names of earlier layers, or features."
                          : fmt::format("Inputs are names of earlier layers, or of the data's inputs: {}.",
                                        fmt::join(inputs_, ", ")));
}

/// The layer before, or the features.
std::vector<Graph::Source> Graph::default_inputs(const Layer& layer, const std::string& where) const {
  if (nodes_.size() == 1 && inputs_.size() > 1)
    throw Error(ErrorKind::config,
                fmt::format("layer {}: the data has several inputs, {}, and the first layer reads none of "
                            "them",
                            layer.name(), fmt::join(inputs_, ", ")),
                where, fmt::format("Name one: `inputs: {}`.", inputs_.front()));
  return {{static_cast<int>(nodes_.size()) - 1, 0}};
}

const Shape& Graph::shape(Source source) const {
  return source.node < 0
             ? features_
             : nodes_[static_cast<std::size_t>(source.node)].outputs[static_cast<std::size_t>(source.output)];
}

/// "conv1 (8x8x32)".
std::string Graph::described(Source source) const {
  if (source.node == 0 && !inputs_.empty())
    return fmt::format("{} ({})", inputs_[static_cast<std::size_t>(source.output)],
                       shape(source).to_string());
  const std::string name =
      source.node < 0 ? "features" : nodes_[static_cast<std::size_t>(source.node)].layer->name();
  return fmt::format("{}{} ({})", name, source.output == 0 ? "" : fmt::format(":{}", source.output),
                     shape(source).to_string());
}

int Graph::sharer_of(const Layer& layer, const std::string& shared_with, const std::string& where) const {
  const auto refuse = [&](const std::string& what, const std::string& advice) {
    return Error(ErrorKind::config, fmt::format("layer {}: {}", layer.name(), what), where, advice);
  };
  const int node = find(shared_with);
  if (node < 0) {
    std::vector<std::string_view> known;
    for (const Node& other : nodes_) known.push_back(other.layer->name());
    const std::string suggestion = nearest(shared_with, known);
    throw refuse(fmt::format("there is no layer '{}' before it to share variables with", shared_with),
                 suggestion.empty() ? "" : fmt::format("Did you mean '{}'?", suggestion));
  }
  const Node& other = nodes_[static_cast<std::size_t>(node)];
  const auto* const borrowing = dynamic_cast<const BorrowingLayer*>(&layer);
  if (borrowing != nullptr && other.layer->kind() == borrowing->owner_kind())
    return other.shared_with >= 0 ? other.shared_with : node;
  if (std::string_view(other.layer->kind()) != layer.kind())
    throw refuse(fmt::format("a {} cannot use the variables of {}, a {}", layer.kind(), shared_with,
                             other.layer->kind()),
                 borrowing != nullptr ? fmt::format("Name an {}.", borrowing->owner_kind())
                                      : "Layers that share variables are of one kind.");
  if (dynamic_cast<const CollectiveLayer*>(&layer) != nullptr)
    throw refuse(fmt::format("a {} cannot share variables: each has statistics of its own", layer.kind()),
                 "Give each branch a layer of its own, or use a layer_norm.");
  return other.shared_with >= 0 ? other.shared_with : node;
}

void Graph::add(std::unique_ptr<Layer> layer, std::vector<std::string> inputs, const std::string& where,
                const std::string& shared_with, bool trainable, const std::string& recompute) {
  if (nodes_.size() >= kMostLayers)
    throw Error(ErrorKind::config, fmt::format("more than {} layers", kMostLayers), where,
                "A recurrent layer repeats itself over steps; other nets need fewer layers.");
  if (const std::string wrong = wrong_in_layer_name(layer->name()); !wrong.empty())
    throw Error(ErrorKind::config,
                fmt::format("'{}' is not a layer name: {}", printable(layer->name()), wrong), where,
                std::string(kLayerNameRule));
  if (layer->name() == "features")
    throw Error(ErrorKind::config, "no layer can be named 'features': that is the data's samples", where);
  if (std::ranges::find(inputs_, layer->name()) != inputs_.end())
    throw Error(ErrorKind::config,
                fmt::format("no layer can be named '{}': that is an input of the data", layer->name()),
                where);
  if (find(layer->name()) >= 0)
    throw Error(ErrorKind::config, fmt::format("two layers are named '{}'", layer->name()), where);
  Node node;
  std::vector<Shape> shapes;
  if (inputs.empty() && layer->traits().takes_inputs) node.inputs = default_inputs(*layer, where);
  if (!inputs.empty() && !layer->traits().takes_inputs)
    throw Error(ErrorKind::config,
                fmt::format("layer {}: a {} takes no inputs", layer->name(), layer->kind()), where);
  for (const std::string& input : inputs)
    node.inputs.push_back(source(input, "layer " + layer->name(), where));
  for (Source input : node.inputs) shapes.push_back(shape(input));
  try {
    node.outputs = layer->infer(shapes);
  } catch (const Error& error) {
    std::string what = with_layer(layer->name(), error.what_happened());
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      what += fmt::format("{}{}", i == 0 ? "; it reads " : ", ", described(node.inputs[i]));
    throw Error(error.kind(), what, where.empty() ? error.where() : where, error.advice());
  }
  node.trainable = trainable;
  node.recompute = recompute;
  if (!shared_with.empty()) node.shared_with = sharer_of(*layer, shared_with, where);
  if (const auto* const borrowing = dynamic_cast<const BorrowingLayer*>(layer.get());
      borrowing != nullptr && shared_with.empty())
    throw Error(
        ErrorKind::config,
        fmt::format("layer {}: a {} has no variables of its own", layer->name(), layer->kind()), where,
        fmt::format("Name the {} whose variables it uses: shared_with: NAME.", borrowing->owner_kind()));
  LOCKSTEP_CHECK(!node.outputs.empty(), "layer {} has no output", layer->name());
  node.layer = std::move(layer);
  node.where = where;
  for (const Shape& output : node.outputs) require_size(node, "an output", output, 1);
  node_of_name_.emplace(node.layer->name(), static_cast<int>(nodes_.size()));
  nodes_.push_back(std::move(node));
}

/// `samples`: of a microshard.
void Graph::require_size(const Node& node, std::string_view what, const Shape& shape,
                         std::int64_t samples) const {
  std::vector<std::int64_t> factors(shape.extents().begin(), shape.extents().end());
  factors.push_back(samples);
  if (product_up_to(kMaxElements, factors)) return;
  throw Error(ErrorKind::config,
              fmt::format("layer {}: {} of {}{} would take {}", node.layer->name(), what, shape.to_string(),
                          samples > 1 ? fmt::format(" for {} samples of a microshard", samples) : "",
                          size_text(product_in_double(factors) * sizeof(float))),
              node.where, fmt::format("The limit is {}.", size_text(4.0 * kMaxElements)));
}

void Graph::add_output(const std::string& name, const std::string& where, bool in_16_bits) {
  outputs_.push_back(source(name, kOutput, where));
  outputs_in_16_bits_.push_back(in_16_bits);
}

void Graph::finish(VariableStore& variables) {
  LOCKSTEP_REQUIRE(!nodes_.empty(), ErrorKind::config, "the model has no layers");
  if (outputs_.empty()) outputs_ = {{static_cast<int>(nodes_.size()) - 1, 0}};
  outputs_in_16_bits_.resize(outputs_.size());
  readers_.assign(nodes_.size(), {});
  for (int i = 0; i < static_cast<int>(nodes_.size()); ++i)
    for (const Source input : nodes_[static_cast<std::size_t>(i)].inputs)
      if (input.node >= 0) readers_[static_cast<std::size_t>(input.node)].push_back(i);
  for (int i = 0; i < static_cast<int>(nodes_.size()); ++i) {
    const Node& node = nodes_[static_cast<std::size_t>(i)];
    const bool used = !readers_[static_cast<std::size_t>(i)].empty();
    if (!used && std::ranges::find(outputs_, i, &Source::node) == outputs_.end())
      throw Error(
          ErrorKind::config,
          fmt::format("the output of layer {} is read by no other layer and no head", node.layer->name()),
          node.where, "Remove it, or name it in the `inputs` of another layer.");
  }
  require_inputs_read();
  freeze_layers();
  for (Node& node : nodes_) declare(node, variables);
  check_frozen(variables);
  require_distinct_paths(nodes_, variables);
  fuse();
  readers_.clear();
}

void Graph::require_inputs_read() const {
  for (int i = 0; i < static_cast<int>(inputs_.size()); ++i) {
    const Source input{0, i};
    const bool read = std::ranges::any_of(
        nodes_, [&](const Node& node) { return std::ranges::find(node.inputs, input) != node.inputs.end(); });
    if (!read && std::ranges::find(outputs_, input) == outputs_.end())
      throw Error(ErrorKind::config,
                  fmt::format("no layer reads the data's input {}", inputs_[static_cast<std::size_t>(i)]), "",
                  "Name it in the `inputs` of a layer, or remove it from data.inputs.");
  }
}

void Graph::declare(Node& node, VariableStore& variables) {
  node.first_variable = static_cast<int>(variables.variables().size());
  if (node.shared_with >= 0) {
    const Node& owner = nodes_[static_cast<std::size_t>(node.shared_with)];
    LOCKSTEP_REQUIRE(owner.last_variable > owner.first_variable, ErrorKind::config,
                     "layer {}: {} has no variables to share", node.layer->name(), owner.layer->name());
    variables.share(owner.first_variable, owner.last_variable, node.layer->name(), owner.layer->name());
    try {
      node.layer->declare(variables);
      variables.end_share();
    } catch (const Error& error) {
      throw Error(error.kind(), error.what_happened(), node.where, error.advice());
    }
  } else {
    variables.freeze([&](const std::string& name) { return is_frozen(node, name); });
    try {
      node.layer->declare(variables);
    } catch (const Error& error) {
      throw Error(error.kind(), with_layer(node.layer->name(), error.what_happened()),
                  error.where().empty() ? node.where : error.where(), error.advice());
    }
    variables.freeze(nullptr);
  }
  node.last_variable = static_cast<int>(variables.variables().size());
  for (int id = node.first_variable; id < node.last_variable; ++id) {
    const Variable& variable = variables[static_cast<VariableId>(id)];
    require_size(node, "variable " + variable.name, variable.shape, 1);
    const std::int64_t elements = variable.shape.num_elements();
    if (variable.trainable) {
      node.parameters += elements;
      node.trainable_elements += VariableStore::padded(elements);
    } else if (variable.parameter && variable.frozen) {
      node.frozen_parameters += elements;
    }
  }
}

}  // namespace lockstep
