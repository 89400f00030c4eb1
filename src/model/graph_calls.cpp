// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Lowers a graph to operations on values: views and fused layers have none, casts between number types are
// added, and only operations that a loss reaches receive a gradient.
#include <algorithm>
#include <map>

#include "core/sizes.h"
#include "model/cast.h"
#include "model/graph.h"
#include "model/recomputation.h"

namespace lockstep {

namespace {

/// Finds, from the losses backwards, the operations that receive a gradient. No other gradient is computed.
void find_gradients(Graph::Calls& calls) {
  std::vector<bool> comes(calls.values.size(), false);
  for (const int output : calls.outputs) comes[static_cast<std::size_t>(output)] = true;
  for (auto operation = calls.operations.rbegin(); operation != calls.operations.rend(); ++operation) {
    operation->backward = std::ranges::any_of(operation->outputs, [&](int output) {
      return comes[static_cast<std::size_t>(output)] &&
             calls.values[static_cast<std::size_t>(output)].wants_gradient;
    });
    if (!operation->backward) continue;
    for (int input : operation->inputs) comes[static_cast<std::size_t>(input)] = true;
  }
  for (std::size_t v = 0; v < calls.values.size(); ++v)
    calls.values[v].wants_gradient = calls.values[v].wants_gradient && comes[v];
}

/// Returns the value in another type. A cast is inserted once per value and type, and shared by all readers.
int in_type(Graph::Calls& calls, int value, DType type) {
  const Graph::Value source = calls.values[static_cast<std::size_t>(value)];
  if (source.type == type) return value;
  for (const int consumer : source.consumers) {
    const Graph::Operation& operation = calls.operations[static_cast<std::size_t>(consumer)];
    const int output = operation.outputs.front();
    if (operation.node < 0 && calls.values[static_cast<std::size_t>(output)].type == type) return output;
  }
  const std::string name = source.producer < 0
                               ? "features"
                               : calls.operations[static_cast<std::size_t>(source.producer)].layer->name();
  calls.casts.push_back(
      make_cast(fmt::format("{} as {}", name, name_of(type)), source.shape, source.type, type));
  const int number = static_cast<int>(calls.operations.size()),
            output = static_cast<int>(calls.values.size());
  calls.values[static_cast<std::size_t>(value)].consumers.push_back(number);
  calls.values.push_back(
      {.shape = source.shape, .type = type, .producer = number, .wants_gradient = source.wants_gradient});
  calls.operations.push_back({.layer = calls.casts.back().get(),
                              .collective = nullptr,
                              .traits = calls.casts.back()->traits(),
                              .inputs = {value},
                              .outputs = {output},
                              .node = -1});
  return output;
}

/// Numbers the segments. A cast belongs to the segment of the operation that it was inserted for.
void find_segments(Graph::Calls& calls, std::span<const Graph::Node> nodes) {
  std::map<std::string_view, int> numbers;
  int following = -1;
  for (auto operation = calls.operations.rbegin(); operation != calls.operations.rend(); ++operation) {
    if (operation->node >= 0) {
      const std::string& name = nodes[static_cast<std::size_t>(operation->node)].recompute;
      following = name.empty() ? -1 : numbers.emplace(name, static_cast<int>(numbers.size())).first->second;
    }
    operation->segment = following;
  }
}

}  // namespace

Graph::Calls Graph::calls(bool training) const {
  Calls calls;
  calls.values.push_back({.shape = features_});
  std::vector<std::vector<int>> values_of(nodes_.size());
  std::vector<int> operation_of(nodes_.size(), -1);
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
    const LayerTraits traits = node.layer->traits();
    if (traits.is_view(training)) {
      values_of[i] = {value(node.inputs[0])};
      continue;
    }
    auto* const collective = dynamic_cast<CollectiveLayer*>(node.layer.get());
    Operation operation{
        .layer = node.layer.get(),
        .collective = collective != nullptr && collective->synchronises() ? collective : nullptr,
        .traits = traits,
        .node = static_cast<int>(i)};
    const DType given =
        node.inputs.empty() ? DType::f32 : calls.values[static_cast<std::size_t>(value(node.inputs[0]))].type;
    for (std::size_t input = 0; input < node.inputs.size(); ++input)
      operation.inputs.push_back(
          in_type(calls, value(node.inputs[input]), traits.input_type(input, type_, given)));
    const int number = static_cast<int>(calls.operations.size());
    const bool shares =
        node.shared_with >= 0 && nodes_[static_cast<std::size_t>(node.shared_with)].parameters > 0;
    bool wants_gradient = node.parameters > 0 || shares;
    for (int input : operation.inputs) {
      Value& read = calls.values[static_cast<std::size_t>(input)];
      read.consumers.push_back(number);
      wants_gradient = wants_gradient || read.wants_gradient;
    }
    for (const Shape& shape : node.outputs) {
      operation.outputs.push_back(static_cast<int>(calls.values.size()));
      calls.values.push_back({.shape = shape,
                              .type = traits.output_type(type_, given),
                              .producer = number,
                              .wants_gradient = training && wants_gradient && !traits.stops_gradient});
    }
    if (shares) {
      const auto owner = static_cast<std::size_t>(node.shared_with);
      operation.owner = operation_of[owner];
      operation.shared_elements = nodes_[owner].trainable_elements;
    }
    operation_of[i] = number;
    values_of[i] = operation.outputs;
    calls.operations.push_back(std::move(operation));
  }
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const int output = value(outputs_[i]);
    calls.outputs.push_back(training && outputs_in_16_bits_[i] ? output : in_type(calls, output, DType::f32));
  }
  calls.node_values = std::move(values_of);
  if (!training) return calls;
  find_gradients(calls);
  find_segments(calls, nodes_);
  return calls;
}

namespace {

/// Microshards that are normalised together must make up all microshards.
void check_group(const Graph::Operation& operation, std::span<const Graph::Node> nodes, int shards) {
  const int group = operation.collective->collective_traits().group_size;
  if (group == 0 || shards % group == 0) return;
  throw Error(
      ErrorKind::config,
      fmt::format("layer {}: group {} does not divide the {} shards", operation.layer->name(), group, shards),
      operation.node < 0 ? "" : nodes[static_cast<std::size_t>(operation.node)].where,
      "Choose a divisor of the number of shards, or 0 for all of them.");
}

}  // namespace

Graph::Calls Graph::prepare(PrepareContext context) const {
  Calls prepared = calls(context.training);
  context.type = type_;
  for (Operation& operation : prepared.operations) {
    if (context.training && operation.collective != nullptr) check_group(operation, nodes_, context.shards);
    const std::size_t inputs = operation.inputs.size();
    const std::unique_ptr<bool[]> wants = std::make_unique<bool[]>(inputs);  // std::vector<bool> has no span
    for (std::size_t i = 0; i < inputs; ++i)
      wants[i] = prepared.values[static_cast<std::size_t>(operation.inputs[i])].wants_gradient;
    context.wants_input_gradient = {wants.get(), inputs};
    const Node* node = operation.node < 0 ? nullptr : &nodes_[static_cast<std::size_t>(operation.node)];
    if (node != nullptr)
      for (const Shape& output : node->outputs)
        require_size(*node, "an output", output, context.max_samples());
    allocate_for(
        fmt::format("layer {}", operation.layer->name()),
        [&] { operation.memory = operation.layer->prepare(context); },
        node == nullptr ? std::string_view{} : std::string_view(node->where));
  }
  if (context.training && recompute_ == Recompute::marked) find_recomputed(prepared);
  if (context.training && recompute_ == Recompute::automatic)
    choose_segments(prepared, context.max_samples());
  return prepared;
}

double Graph::flops_per_sample() const {
  double sum = 0;
  for (const Node& node : nodes_) sum += node.layer->traits().flops_per_sample;
  return sum;
}

}  // namespace lockstep
