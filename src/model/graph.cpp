// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "model/graph.h"

#include <algorithm>

#include "core/scalar.h"

namespace lockstep {

Graph::Graph(Shape features) : features_(features) {}

int Graph::find(const std::string& name) const {
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    if (nodes_[i].layer->name() == name) return static_cast<int>(i);
  return -1;
}

Graph::Source Graph::source(const std::string& input, const std::string& reader,
                            const std::string& where) const {
  if (input == "features") return {-1, 0};
  if (const int node = find(input); node >= 0) return {node, 0};
  const std::size_t colon = input.rfind(':');
  if (const int node = colon == std::string::npos ? -1 : find(input.substr(0, colon)); node >= 0) {
    const auto output = parse_integer(input.substr(colon + 1));
    const auto count = static_cast<std::int64_t>(nodes_[static_cast<std::size_t>(node)].outputs.size());
    if (output && *output >= 0 && *output < count) return {node, static_cast<int>(*output)};
    throw Error(ErrorKind::config,
                fmt::format("layer {}: '{}' names no output: {} has {}", reader, input,
                            input.substr(0, colon), count),
                where);
  }
  std::vector<std::string_view> known = {"features"};
  for (const Node& other : nodes_) known.push_back(other.layer->name());
  const std::string suggestion = nearest(input, known);
  throw Error(ErrorKind::config, fmt::format("layer {}: there is no layer '{}' before it", reader, input),
              where,
              suggestion.empty() ? "Inputs are names of earlier layers, or features."
                                 : fmt::format("Did you mean '{}'?", suggestion));
}

const Shape& Graph::shape(Source source) const {
  return source.node < 0
             ? features_
             : nodes_[static_cast<std::size_t>(source.node)].outputs[static_cast<std::size_t>(source.output)];
}

void Graph::add(std::unique_ptr<Layer> layer, std::vector<std::string> inputs, const std::string& where) {
  LOCKSTEP_REQUIRE(find(layer->name()) < 0 && layer->name() != "features", ErrorKind::config,
                   "{}{}two layers are named '{}'", where, where.empty() ? "" : ": ", layer->name());
  Node node;
  std::vector<Shape> shapes;
  if (inputs.empty()) node.inputs = {{static_cast<int>(nodes_.size()) - 1, 0}};
  for (const std::string& input : inputs) node.inputs.push_back(source(input, layer->name(), where));
  for (Source input : node.inputs) shapes.push_back(shape(input));
  try {
    node.outputs = layer->infer(shapes);
  } catch (const Error& error) {
    if (where.empty() || error.where() == where) throw;
    throw Error(error.kind(), error.what_happened(), where, error.advice());
  }
  LOCKSTEP_CHECK(!node.outputs.empty(), "layer {} has no output", layer->name());
  node.layer = std::move(layer);
  nodes_.push_back(std::move(node));
}

void Graph::add_output(const std::string& name, const std::string& where) {
  outputs_.push_back(source(name, "the model's output", where));
}

const Shape& Graph::output() const { return nodes_.empty() ? features_ : nodes_.back().outputs[0]; }

bool Graph::only_consumer(int producer, int consumer) const {
  if (nodes_[static_cast<std::size_t>(producer)].outputs.size() > 1 ||
      std::ranges::find(outputs_, producer, &Source::node) != outputs_.end())
    return false;
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    for (Source input : nodes_[i].inputs)
      if (input.node == producer && static_cast<int>(i) != consumer) return false;
  return true;
}

void Graph::finish(VariableStore& variables) {
  LOCKSTEP_REQUIRE(!nodes_.empty(), ErrorKind::config, "the model has no layers");
  if (outputs_.empty()) outputs_ = {{static_cast<int>(nodes_.size()) - 1, 0}};
  for (int i = 0; i < static_cast<int>(nodes_.size()); ++i) {
    const Node& node = nodes_[static_cast<std::size_t>(i)];
    for (int output = 0; output < static_cast<int>(node.outputs.size()); ++output) {
      if (std::ranges::find(outputs_, Source{i, output}) != outputs_.end()) continue;
      const bool used = std::any_of(nodes_.begin(), nodes_.end(), [&](const Node& other) {
        return std::find(other.inputs.begin(), other.inputs.end(), Source{i, output}) != other.inputs.end();
      });
      LOCKSTEP_REQUIRE(used, ErrorKind::config,
                       "{} of layer {} is read by no other layer and no head; remove it, or name it in the "
                       "`inputs` of one",
                       node.outputs.size() == 1 ? "the output" : fmt::format("output {}", output),
                       node.layer->name());
    }
  }
  for (Node& node : nodes_) {
    const std::int64_t before = variables.num_parameters();
    node.first_variable = static_cast<int>(variables.variables().size());
    node.layer->declare(variables);
    node.last_variable = static_cast<int>(variables.variables().size());
    node.parameters = variables.num_parameters() - before;
  }
  fuse();
}

// A relu goes into the layer before it, an addition into a batch_norm before it, when nobody else reads what
// lies between.
void Graph::fuse() {
  for (int i = 0; i < static_cast<int>(nodes_.size()); ++i) {
    Node& node = nodes_[static_cast<std::size_t>(i)];
    if (node.layer->is_addition()) fuse_addition(i);
    if (!node.layer->is_relu() || node.inputs[0].node < 0 || !only_consumer(node.inputs[0].node, i)) continue;
    const Node& before = nodes_[static_cast<std::size_t>(node.inputs[0].node)];
    const int owner = before.fused_into >= 0 ? before.fused_into : node.inputs[0].node;
    if (nodes_[static_cast<std::size_t>(owner)].layer->fuse_relu()) node.fused_into = owner;
  }
}

// Into the operand that is computed later, which then runs when the other one is there.
void Graph::fuse_addition(int addition) {
  Node& node = nodes_[static_cast<std::size_t>(addition)];
  const Source later = node.inputs[0].node > node.inputs[1].node ? node.inputs[0] : node.inputs[1];
  const Source other = later == node.inputs[0] ? node.inputs[1] : node.inputs[0];
  if (later.node < 0 || later.node == other.node || !only_consumer(later.node, addition)) return;
  Node& operand = nodes_[static_cast<std::size_t>(later.node)];
  if (operand.fused_into >= 0 || !operand.layer->fuse_residual()) return;
  operand.inputs.push_back(other);
  node.fused_into = later.node;
}

Graph::Calls Graph::calls(bool training) const {
  Calls calls;
  calls.values.push_back({.shape = features_});
  std::vector<std::vector<int>> values_of(nodes_.size());
  auto value = [&](Source source) {
    return source.node < 0
               ? 0
               : values_of[static_cast<std::size_t>(source.node)][static_cast<std::size_t>(source.output)];
  };
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const Node& node = nodes_[i];
    if (node.fused_into >= 0) {
      values_of[i] = values_of[static_cast<std::size_t>(node.fused_into)];
      continue;
    }
    if (node.layer->is_view(training)) {
      values_of[i] = {value(node.inputs[0])};
      continue;
    }
    Operation operation{.layer = node.layer.get(),
                        .collective = dynamic_cast<CollectiveLayer*>(node.layer.get()),
                        .node = static_cast<int>(i)};
    const int number = static_cast<int>(calls.operations.size());
    bool wants_gradient = node.parameters > 0;
    for (Source input : node.inputs) {
      operation.inputs.push_back(value(input));
      Value& read = calls.values[static_cast<std::size_t>(value(input))];
      read.consumers.push_back(number);
      wants_gradient = wants_gradient || read.wants_gradient;
    }
    for (const Shape& shape : node.outputs) {
      operation.outputs.push_back(static_cast<int>(calls.values.size()));
      calls.values.push_back(
          {.shape = shape, .producer = number, .wants_gradient = training && wants_gradient});
    }
    values_of[i] = operation.outputs;
    calls.operations.push_back(std::move(operation));
  }
  for (const Source output : outputs_) calls.outputs.push_back(value(output));
  return calls;
}

double Graph::flops_per_sample() const {
  double sum = 0;
  for (const Node& node : nodes_) sum += node.layer->flops_per_sample();
  return sum;
}

}  // namespace lockstep
