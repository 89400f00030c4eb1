// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A model in C++, as a program writes it:
//
//   LayerOutput x = layers::conv2d(features, {.name = "conv1", .filters = 32, .kernel = 3});
//   x = layers::relu(x);
//   const LayerOutput logits = layers::dense(layers::flatten(x), {.name = "logits", .units = 10});
//   const TrainingLoss loss = losses::softmax_cross_entropy(labels, logits);
//
// The functions of options.h add layers to a list, as a configuration has one, so that the graph, its names
// and its bits are those of the configuration (model_section()). Nothing is computed, and no shape is known
// yet. A function of one's own that takes and gives LayerOutputs is a block.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/option_value.h"

namespace lockstep {

class LayerList;
class TrainingLoss;

/// An output of a layer, or an input of the model.
class LayerOutput {
 public:
  /// The name by which other layers read it: "conv1", "split1:1", "features".
  const std::string& name() const { return name_; }
  /// Another output of the same layer, counted from 0.
  LayerOutput output(int number) const;

 private:
  friend LayerOutput add_layer(const class LayerInputs&, const Choice&);
  friend class Features;
  friend class TrainingLoss;
  friend LayerOutput add_layers(const LayerOutput&, const Node&);
  friend Node predictions_section(const std::vector<std::pair<std::string, LayerOutput>>&);
  friend TrainingLoss loss_term(const class LabelColumns&, const LayerOutput&, const Choice&,
                                const struct LossTermOptions&);
  LayerOutput(std::shared_ptr<LayerList> list, std::string name)
      : list_(std::move(list)), name_(std::move(name)) {}

  std::shared_ptr<LayerList> list_;
  std::string name_;
};

/// What the samples have: the input of a model, or several by name.
class Features {
 public:
  Features();
  /// The features of samples with one input.
  operator LayerOutput() const;
  /// One of several inputs: its key in data.inputs, or in Input::named().
  LayerOutput operator[](std::string_view name) const;

  const std::shared_ptr<LayerList>& list() const { return list_; }

 private:
  std::shared_ptr<LayerList> list_;
};

/// What a layer reads.
class LayerInputs {
 public:
  LayerInputs(const LayerOutput& input) : inputs_{input} {}
  LayerInputs(const Features& features) : inputs_{features} {}
  LayerInputs(std::initializer_list<LayerOutput> inputs) : inputs_(inputs) {}
  LayerInputs(std::vector<LayerOutput> inputs) : inputs_(std::move(inputs)) {}
  const std::vector<LayerOutput>& all() const { return inputs_; }

 private:
  std::vector<LayerOutput> inputs_;
};

/// Adds a layer of this kind: one of options.h, or one that the program registered. Throws Error(config) if
/// the inputs are of two models, or there are none.
LayerOutput add_layer(const LayerInputs& inputs, const Choice& layer);
/// Adds a layer with the variables of an earlier layer of the same kind, as in a siamese net.
LayerOutput add_layer_shared(const LayerInputs& inputs, const LayerOutput& shared_with, Choice layer);
/// Adds the layers of a configuration (model.layers, in plain form: blocks_expanded()), whose first one reads
/// `input`. Gives the output of the last. Throws Error(config).
LayerOutput add_layers(const LayerOutput& input, const Node& layers);

/// The labels of the samples: all label columns, some of them, or a target of the data by name.
class LabelColumns {
 public:
  LabelColumns() = default;
  /// A target (data.targets), or several columns.
  LabelColumns operator[](std::string_view target) const;
  /// Columns [first, last), from 0.
  LabelColumns columns(std::int64_t first, std::int64_t last) const;
  /// The labels as the option `labels` of a head; null: all.
  const OptionValue& node() const { return node_; }

 private:
  explicit LabelColumns(OptionValue node) : node_(std::move(node)) {}
  OptionValue node_ = nullptr;
};

/// Options of a loss in a sum.
struct LossTermOptions {
  /// Reported as loss/NAME; needed where there are several.
  std::string name = {};
  /// Weights of the samples: the name of a target, or a label column.
  Setting<OptionValue> sample_weights = {};
  /// Rows of label values, one per class (the option label_table of a head).
  Setting<OptionValue> label_table = {};
};

/// What training minimises: a loss, or a weighted sum of losses.
class TrainingLoss {
 public:
  /// None: a model that only predicts.
  TrainingLoss() = default;
  bool exists() const { return !terms_.empty(); }

  friend TrainingLoss operator+(TrainingLoss a, const TrainingLoss& b);
  friend TrainingLoss operator*(double factor, TrainingLoss loss);
  friend TrainingLoss operator*(TrainingLoss loss, double factor) { return factor * std::move(loss); }

  /// The section `model` of a configuration: layers, and loss or heads.
  Node model_section() const;

 private:
  friend TrainingLoss loss_term(const LabelColumns&, const LayerOutput&, const Choice&,
                                const LossTermOptions&);
  struct Term {
    LayerOutput output;
    Node loss, labels;
    LossTermOptions options;
    double weight = 1;
  };
  std::vector<Term> terms_;
};

/// The section `model` for outputs of layers as they are, by name. Throws Error(config).
Node predictions_section(const std::vector<std::pair<std::string, LayerOutput>>& predictions);

/// One loss: of options.h, or one that the program registered.
TrainingLoss loss_term(const LabelColumns& labels, const LayerOutput& output, const Choice& loss,
                       const LossTermOptions& term = {});

}  // namespace lockstep
