// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "model/graph.h"

#include <algorithm>

#include "core/scalar.h"
#include "model/cast.h"

namespace lockstep {

namespace {
const std::string kOutput = "a head's output";
}  // namespace

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
    throw Error(
        ErrorKind::config,
        fmt::format("{}: '{}' names no output: {} has {}", reader, input, input.substr(0, colon), count),
        where);
  }
  std::vector<std::string_view> known = {"features"};
  for (const Node& other : nodes_) known.push_back(other.layer->name());
  const std::string suggestion = nearest(input, known);
  throw Error(
      ErrorKind::config,
      fmt::format("{}: there is no layer '{}'{}", reader, input, reader == kOutput ? "" : " before it"),
      where,
      suggestion.empty() ? "Inputs are names of earlier layers, or features."
                         : fmt::format("Did you mean '{}'?", suggestion));
}

const Shape& Graph::shape(Source source) const {
  return source.node < 0
             ? features_
             : nodes_[static_cast<std::size_t>(source.node)].outputs[static_cast<std::size_t>(source.output)];
}

/// "conv1 (8x8x32)".
std::string Graph::described(Source source) const {
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
  if (std::string_view(other.layer->kind()) != layer.kind())
    throw refuse(fmt::format("a {} cannot use the variables of {}, a {}", layer.kind(), shared_with,
                             other.layer->kind()),
                 "Layers that share variables are of one kind.");
  if (dynamic_cast<const CollectiveLayer*>(&layer) != nullptr)
    throw refuse(fmt::format("a {} cannot share variables: each has statistics of its own", layer.kind()),
                 "Give each branch a layer of its own, or use a layer_norm.");
  return other.shared_with >= 0 ? other.shared_with : node;
}

void Graph::add(std::unique_ptr<Layer> layer, std::vector<std::string> inputs, const std::string& where,
                const std::string& shared_with) {
  LOCKSTEP_REQUIRE(find(layer->name()) < 0 && layer->name() != "features", ErrorKind::config,
                   "{}{}two layers are named '{}'", where, where.empty() ? "" : ": ", layer->name());
  Node node;
  std::vector<Shape> shapes;
  if (inputs.empty() && layer->traits().takes_inputs)
    node.inputs = {{static_cast<int>(nodes_.size()) - 1, 0}};
  LOCKSTEP_REQUIRE(inputs.empty() || layer->traits().takes_inputs, ErrorKind::config,
                   "{}{}layer {}: a {} takes no inputs", where, where.empty() ? "" : ": ", layer->name(),
                   layer->kind());
  for (const std::string& input : inputs)
    node.inputs.push_back(source(input, "layer " + layer->name(), where));
  for (Source input : node.inputs) shapes.push_back(shape(input));
  try {
    node.outputs = layer->infer(shapes);
  } catch (const Error& error) {
    std::string what = error.what_happened();
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      what += fmt::format("{}{}", i == 0 ? "; it reads " : ", ", described(node.inputs[i]));
    throw Error(error.kind(), what, where.empty() ? error.where() : where, error.advice());
  }
  if (!shared_with.empty()) node.shared_with = sharer_of(*layer, shared_with, where);
  LOCKSTEP_CHECK(!node.outputs.empty(), "layer {} has no output", layer->name());
  node.layer = std::move(layer);
  node.where = where;
  nodes_.push_back(std::move(node));
}

void Graph::add_output(const std::string& name, const std::string& where) {
  outputs_.push_back(source(name, kOutput, where));
}

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
    const bool used = std::any_of(nodes_.begin(), nodes_.end(), [&](const Node& other) {
      return std::ranges::any_of(other.inputs, [&](Source input) { return input.node == i; });
    });
    LOCKSTEP_REQUIRE(used || std::ranges::find(outputs_, i, &Source::node) != outputs_.end(),
                     ErrorKind::config,
                     "the output of layer {} is read by no other layer and no head; remove it, or name it in "
                     "the `inputs` of one",
                     node.layer->name());
  }
  for (Node& node : nodes_) declare(node, variables);
  fuse();
}

void Graph::declare(Node& node, VariableStore& variables) {
  const std::int64_t before = variables.num_parameters();
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
    node.layer->declare(variables);
  }
  node.last_variable = static_cast<int>(variables.variables().size());
  node.parameters = variables.num_parameters() - before;
  for (int id = node.first_variable; id < node.last_variable; ++id)
    if (const Variable& variable = variables[static_cast<VariableId>(id)]; variable.trainable)
      node.trainable_elements += VariableStore::padded(variable.shape.num_elements());
}

// A relu is fused into the layer before it, and an addition into a batch_norm before it, if no other layer
// reads the value in between.
void Graph::fuse() {
  for (int i = 0; i < static_cast<int>(nodes_.size()); ++i) {
    Node& node = nodes_[static_cast<std::size_t>(i)];
    const Fusible fusible = node.layer->traits().fusible;
    if (fusible == Fusible::addition) fuse_addition(i);
    if (fusible != Fusible::relu || node.inputs[0].node < 0 || !only_consumer(node.inputs[0].node, i))
      continue;
    const Node& before = nodes_[static_cast<std::size_t>(node.inputs[0].node)];
    const int owner = before.fused_into >= 0 ? before.fused_into : node.inputs[0].node;
    if (nodes_[static_cast<std::size_t>(owner)].layer->fuse(Fusible::relu)) node.fused_into = owner;
  }
}

// An addition is fused into the operand that is computed later; the other operand is ready by then.
void Graph::fuse_addition(int addition) {
  Node& node = nodes_[static_cast<std::size_t>(addition)];
  const Source later = node.inputs[0].node > node.inputs[1].node ? node.inputs[0] : node.inputs[1];
  const Source other = later == node.inputs[0] ? node.inputs[1] : node.inputs[0];
  if (later.node < 0 || later.node == other.node || !only_consumer(later.node, addition)) return;
  Node& operand = nodes_[static_cast<std::size_t>(later.node)];
  if (operand.fused_into >= 0 || !operand.layer->fuse(Fusible::addition)) return;
  operand.inputs.push_back(other);
  node.fused_into = later.node;
}

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

}  // namespace

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
    const LayerTraits traits = node.layer->traits();
    if (traits.is_view(training)) {
      values_of[i] = {value(node.inputs[0])};
      continue;
    }
    Operation operation{.layer = node.layer.get(),
                        .collective = dynamic_cast<CollectiveLayer*>(node.layer.get()),
                        .traits = traits,
                        .node = static_cast<int>(i)};
    const DType given =
        node.inputs.empty() ? DType::f32 : calls.values[static_cast<std::size_t>(value(node.inputs[0]))].type;
    for (std::size_t input = 0; input < node.inputs.size(); ++input)
      operation.inputs.push_back(
          in_type(calls, value(node.inputs[input]), traits.input_type(input, type_, given)));
    const int number = static_cast<int>(calls.operations.size());
    bool wants_gradient = node.parameters > 0 || node.shared_with >= 0;
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
    if (node.shared_with >= 0)
      for (std::size_t other = 0; other < calls.operations.size(); ++other)
        if (calls.operations[other].node == node.shared_with) {
          operation.owner = static_cast<int>(other);
          operation.shared_elements = nodes_[static_cast<std::size_t>(node.shared_with)].trainable_elements;
        }
    values_of[i] = operation.outputs;
    calls.operations.push_back(std::move(operation));
  }
  for (const Source output : outputs_) calls.outputs.push_back(in_type(calls, value(output), DType::f32));
  calls.node_values = std::move(values_of);
  if (training) find_gradients(calls);
  return calls;
}

Graph::Calls Graph::prepare(PrepareContext context) const {
  Calls prepared = calls(context.training);
  context.type = type_;
  for (Operation& operation : prepared.operations) {
    const std::size_t inputs = operation.inputs.size();
    const std::unique_ptr<bool[]> wants = std::make_unique<bool[]>(inputs);  // std::vector<bool> has no span
    for (std::size_t i = 0; i < inputs; ++i)
      wants[i] = prepared.values[static_cast<std::size_t>(operation.inputs[i])].wants_gradient;
    context.wants_input_gradient = {wants.get(), inputs};
    operation.memory = operation.layer->prepare(context);
  }
  return prepared;
}

double Graph::flops_per_sample() const {
  double sum = 0;
  for (const Node& node : nodes_) sum += node.layer->traits().flops_per_sample;
  return sum;
}

}  // namespace lockstep
