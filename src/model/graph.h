// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A model as a graph of named layers, in topological order. Build it from a configuration (graph_from_config)
// or in C++ with add(); finish() then declares the variables and fuses layers.
//
// calls() lowers the graph to operations on values, for training or for inference. A value is one activation.
// A view layer (flatten; dropout in inference) has no operation and no value of its own.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/name_pattern.h"
#include "core/named_shape.h"
#include "model/collective_layer.h"

namespace lockstep {

enum class Recompute;

/// A pattern of names of layers and of variables that are frozen.
struct FreezeRule {
  NamePattern pattern;
  std::string where = {};  ///< in the configuration, for messages
};

class Graph {
 public:
  /// `features`: the shape of one sample. Layers read it under the name "features".
  explicit Graph(Shape features);
  /// The samples have several inputs, one after the other (joined_shape). Layers read them under their names.
  /// Throws Error(config) for a name that no layer could have.
  explicit Graph(std::span<const NamedShape> inputs);

  /// Adds a layer and infers its shapes. `inputs` are names of earlier nodes ("split1:1" is the second output
  /// of split1); empty means the last node added, or the features. `where` is the position in the
  /// configuration, for messages. `shared_with` names an earlier layer of the same kind whose variables this
  /// layer uses, as in a siamese net. `trainable` false freezes the layer's variables. `recompute` names the
  /// segment of the layer (recomputation.h); empty: none.
  void add(std::unique_ptr<Layer> layer, std::vector<std::string> inputs = {}, const std::string& where = {},
           const std::string& shared_with = {}, bool trainable = true, const std::string& recompute = {});
  /// Adds an output of the model: "layer", or "layer:1" for the second output of a layer. Without a call, the
  /// first output of the last layer is the only one. Call before finish().
  /// `in_16_bits`: in training, the output is read in the type of its layer; else, and in inference, as
  /// float32.
  void add_output(const std::string& name, const std::string& where = {}, bool in_16_bits = false);
  /// Freezes layers, and single variables. Call before finish(), which throws Error(config) for a pattern
  /// that matches nothing. finish() also freezes a layer to which no loss sends a gradient, because every
  /// path to a loss passes a stop_gradient.
  void freeze(std::vector<FreezeRule> rules) { freeze_ = std::move(rules); }
  /// Freezes the variables of these names, too. Call before finish().
  void freeze_variables(std::function<bool(const std::string& name)> frozen) { frozen_ = std::move(frozen); }
  /// Sets the type of the activations: float32, or a 16-bit type. Layers that compute in float32 get a cast
  /// before them, and so do losses. Call before calls().
  void hold_activations_as(DType type) { type_ = type; }
  DType activation_type() const { return type_; }
  /// Sets what prepare() recomputes in training. Changes no number.
  void recompute(Recompute which) { recompute_ = which; }
  Recompute recompute() const { return recompute_; }
  /// Declares all variables, then fuses layers (linear + relu, batch_norm + add + relu). Call once.
  void finish(VariableStore& variables);

  /// An output of a node; node -1 is the features.
  struct Source {
    int node;
    int output = 0;
    friend bool operator==(const Source&, const Source&) = default;
  };
  /// A layer as the user wrote it.
  struct Node {
    std::unique_ptr<Layer> layer;
    std::vector<Source> inputs;
    std::vector<Shape> outputs;
    int fused_into = -1;                                  ///< the node that computes it, or -1
    int shared_with = -1;                                 ///< the node whose variables it uses, or -1
    bool trainable = true;                                ///< false: its variables are frozen
    std::string recompute;                                ///< its segment; empty: none
    std::string where;                                    ///< in the configuration, for messages
    std::int64_t parameters = 0, trainable_elements = 0;  ///< trainable, without and with alignment gaps
    std::int64_t frozen_parameters = 0;                   ///< that would be trainable otherwise
    int first_variable = 0, last_variable = 0;  ///< numbers of its own variables in the store: [first, last)
  };
  std::span<const Node> nodes() const { return nodes_; }
  const Shape& features() const { return features_; }
  /// The outputs that the losses read, in the order of add_output(). Valid after finish().
  std::span<const Source> outputs() const { return outputs_; }
  const Shape& shape(Source source) const;

  /// One call of a layer or of a cast, with the values that it reads and writes. Value 0 is the features.
  struct Operation {
    Layer* layer;
    CollectiveLayer* collective;  ///< the same layer if it synchronises, else null
    LayerTraits traits;           ///< after fusion
    std::vector<int> inputs, outputs;
    int node;               ///< the node that it comes from; -1: a cast
    bool backward = false;  ///< it receives a gradient, and its variables or an earlier layer's need it
    int owner = -1;         ///< the operation whose variables it shares, or -1
    std::int64_t shared_elements = 0;  ///< elements of the owner's flat range, gaps included
    LayerMemory memory = {};           ///< set by prepare()
    int segment = -1;                  ///< of activations that are computed once more; -1: none
    bool recomputed = false;           ///< it is called once more before the segment's backward calls
  };
  struct Value {
    Shape shape;  ///< per sample
    DType type = DType::f32;
    int producer = -1;            ///< operation; -1 for the features
    std::vector<int> consumers;   ///< operations, ascending; one that reads it twice is listed twice
    bool wants_gradient = false;  ///< its gradient is computed
  };
  /// The graph as calls and values, for one mode.
  struct Calls {
    std::vector<Operation> operations;
    std::vector<Value> values;
    std::vector<int> outputs;                   ///< values of Graph::outputs(); a value may occur twice
    std::vector<std::vector<int>> node_values;  ///< by node and output
    std::vector<std::shared_ptr<Layer>> casts;

    /// After the loss the operation finds the value, one of its inputs or outputs, where it was recomputed.
    bool reads_recomputed(const Operation& operation, int value) const {
      const int producer = values[static_cast<std::size_t>(value)].producer;
      if (producer < 0) return false;
      const Operation& of = operations[static_cast<std::size_t>(producer)];
      return of.recomputed && of.segment == operation.segment;
    }
  };
  /// Lowers the graph. Call after finish(). Operations have the segments that layers name.
  Calls calls(bool training) const;
  /// calls(context.training), with every layer prepared, and segments as recompute() says. `type` and
  /// `wants_input_gradient` of the context are ignored: the graph knows them.
  Calls prepare(PrepareContext context) const;

  /// Multiplications and additions of a forward pass, per sample.
  double flops_per_sample() const;

 private:
  int find(const std::string& name) const;
  Source source(const std::string& input, const std::string& reader, const std::string& where) const;
  std::vector<Source> default_inputs(const Layer& layer, const std::string& where) const;
  void require_inputs_read() const;
  std::string described(Source source) const;
  int sharer_of(const Layer& layer, const std::string& shared_with, const std::string& where) const;
  void declare(Node& node, VariableStore& variables);
  std::vector<bool> reached_by_losses() const;
  void freeze_layers();
  bool is_frozen(const Node& node, const std::string& variable) const;
  void check_frozen(const VariableStore& variables) const;
  bool only_consumer(int producer, int consumer) const;
  void fuse();
  void fuse_addition(int addition);
  void require_size(const Node& node, std::string_view what, const lockstep::Shape& shape,
                    std::int64_t samples) const;

  Shape features_;
  std::vector<std::string> inputs_;  ///< names of the outputs of node 0; empty: layers read the features
  DType type_ = DType::f32;
  Recompute recompute_{};  ///< marked
  std::vector<FreezeRule> freeze_;
  std::function<bool(const std::string&)> frozen_;
  std::vector<Node> nodes_;
  std::unordered_map<std::string, int> node_of_name_;
  std::vector<std::vector<int>> readers_;  ///< of each node, while layers are fused
  std::vector<Source> outputs_;
  std::vector<bool> outputs_in_16_bits_;
};

/// A layer of a configuration with checked options, not yet in a graph.
struct LayerDraft {
  std::unique_ptr<Layer> layer;
  std::vector<std::string> inputs;
  std::string where, shared_with;
  bool trainable = true;
  std::string recompute = {};  ///< its segment (recomputation.h); empty: none
};
/// Reads the configuration's list of layers (`relu`, `dropout: {rate: 0.2}`). Every layer takes the options
/// of common_layer_table() in addition to its own. Needs no data. Throws Error(config) with positions.
/// `other_names`: what may stand in such a list before it is expanded (blocks); an unknown name may be meant
/// as one of them.
std::vector<LayerDraft> layers_from_config(const lockstep::Node& layers,
                                           std::span<const std::string> other_names = {});
/// The graph of a list of layers, for samples of the shape `features`.
Graph graph_from_config(const lockstep::Node& layers, const Shape& features);
/// The graph of a list of layers, for samples with several inputs.
Graph graph_from_config(const lockstep::Node& layers, std::span<const NamedShape> inputs);
/// The options that every layer takes: name, inputs, shared_with, trainable, recompute.
std::span<const ParamSpec> common_layer_table();

}  // namespace lockstep
