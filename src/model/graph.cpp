// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "model/graph.h"

#include <algorithm>

namespace lockstep {

Graph::Graph(Shape features) : features_(features) {}

int Graph::find(const std::string& name) const {
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    if (nodes_[i].layer->name() == name) return static_cast<int>(i);
  return -1;
}

void Graph::add(std::unique_ptr<Layer> layer, std::vector<std::string> inputs, const std::string& where) {
  LOCKSTEP_REQUIRE(find(layer->name()) < 0 && layer->name() != "features", ErrorKind::config, "{}{}two layers are named '{}'", where,
                   where.empty() ? "" : ": ", layer->name());
  Node node;
  std::vector<Shape> shapes;
  if (inputs.empty()) node.inputs = {static_cast<int>(nodes_.size()) - 1};
  for (const std::string& input : inputs) {
    const int index = input == "features" ? -1 : find(input);
    if (index < 0 && input != "features") {
      std::vector<std::string_view> known = {"features"};
      for (const Node& other : nodes_) known.push_back(other.layer->name());
      const std::string suggestion = nearest(input, known);
      throw Error(ErrorKind::config, fmt::format("layer {}: there is no layer '{}' before it", layer->name(), input), where,
                  suggestion.empty() ? "Inputs are names of earlier layers, or features." : fmt::format("Did you mean '{}'?", suggestion));
    }
    node.inputs.push_back(index);
  }
  for (int input : node.inputs) shapes.push_back(input < 0 ? features_ : nodes_[static_cast<std::size_t>(input)].output);
  try {
    node.output = layer->infer(shapes).at(0);
  } catch (const Error& error) {
    if (where.empty() || error.where() == where) throw;
    throw Error(error.kind(), error.what_happened(), where, error.advice());
  }
  node.layer = std::move(layer);
  nodes_.push_back(std::move(node));
}

const Shape& Graph::output() const { return nodes_.empty() ? features_ : nodes_.back().output; }

bool Graph::only_consumer(int producer, int consumer) const {
  if (producer == static_cast<int>(nodes_.size()) - 1) return false;
  for (std::size_t i = 0; i < nodes_.size(); ++i)
    for (int input : nodes_[i].inputs)
      if (input == producer && static_cast<int>(i) != consumer) return false;
  return true;
}

void Graph::finish(VariableStore& variables) {
  LOCKSTEP_REQUIRE(!nodes_.empty(), ErrorKind::config, "the model has no layers");
  for (std::size_t i = 0; i + 1 < nodes_.size(); ++i) {
    const bool used = std::any_of(nodes_.begin(), nodes_.end(), [&](const Node& other) {
      return std::find(other.inputs.begin(), other.inputs.end(), static_cast<int>(i)) != other.inputs.end();
    });
    LOCKSTEP_REQUIRE(used, ErrorKind::config, "layer {} is read by no other layer; remove it, or name it in the `inputs` of one",
                     nodes_[i].layer->name());
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

// A relu goes into the layer before it, an addition into a batch_norm before it, when nobody else reads what lies
// between. The absorbing layer then runs in the place of the absorbed one.
void Graph::fuse() {
  auto owner = [&](int node) {
    while (node >= 0 && nodes_[static_cast<std::size_t>(node)].fused_into >= 0) node = nodes_[static_cast<std::size_t>(node)].fused_into;
    return node;
  };
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    Node& node = nodes_[i];
    if (node.layer->is_relu()) {
      const int input = node.inputs[0];
      if (input >= 0 && only_consumer(input, static_cast<int>(i)) && nodes_[static_cast<std::size_t>(owner(input))].layer->fuse_relu())
        node.fused_into = owner(input);
    } else if (node.layer->is_addition() && node.inputs[0] != node.inputs[1]) {
      for (const int which : {1, 0}) {  // the later operand first
        const int input = std::max(node.inputs[0], node.inputs[1]) == node.inputs[static_cast<std::size_t>(which)]
                              ? node.inputs[static_cast<std::size_t>(which)]
                              : -1;
        if (input < 0 || nodes_[static_cast<std::size_t>(input)].fused_into >= 0) continue;
        if (only_consumer(input, static_cast<int>(i)) && nodes_[static_cast<std::size_t>(input)].layer->fuse_residual()) {
          nodes_[static_cast<std::size_t>(input)].inputs.push_back(node.inputs[static_cast<std::size_t>(1 - which)]);
          node.fused_into = input;
          break;
        }
      }
    }
  }
}

Graph::Calls Graph::calls(bool training) const {
  Calls calls;
  calls.values.push_back({.shape = features_});
  std::vector<int> value_of(nodes_.size(), -1);
  auto value = [&](int node) { return node < 0 ? 0 : value_of[static_cast<std::size_t>(node)]; };
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const Node& node = nodes_[i];
    if (node.fused_into >= 0) {
      value_of[i] = value_of[static_cast<std::size_t>(node.fused_into)];
      continue;
    }
    if (node.layer->is_view(training)) {
      value_of[i] = value(node.inputs[0]);
      continue;
    }
    Operation operation{node.layer.get(), dynamic_cast<CollectiveLayer*>(node.layer.get()), {}, static_cast<int>(calls.values.size()), static_cast<int>(i)};
    const int number = static_cast<int>(calls.operations.size());
    bool wants_gradient = node.parameters > 0;
    for (int input : node.inputs) {
      operation.inputs.push_back(value(input));
      Value& read = calls.values[static_cast<std::size_t>(value(input))];
      read.consumers.push_back(number);
      wants_gradient = wants_gradient || read.wants_gradient;
    }
    value_of[i] = operation.output;
    calls.values.push_back({.shape = node.output, .producer = number, .wants_gradient = training && wants_gradient});
    calls.operations.push_back(std::move(operation));
  }
  calls.output = value(static_cast<int>(nodes_.size()) - 1);
  return calls;
}

double Graph::flops_per_sample() const {
  double sum = 0;
  for (const Node& node : nodes_) sum += node.layer->flops_per_sample();
  return sum;
}

}  // namespace lockstep
