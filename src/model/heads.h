// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The heads of a model. A head is an output of the graph with a loss, a weight and labels. The labels are
// columns of the data's labels, either as they are or replaced by rows of a table. The model's loss is the
// sum of the heads' losses times their weights.
//
// The labels of a microshard are arranged in host memory, head by head, in the form that each loss takes
// (LabelBlock). A device gets a copy of the whole block.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/named_shape.h"
#include "model/graph.h"
#include "model/loss.h"

namespace lockstep {

struct Head {
  std::string name = {};    ///< empty: the only head, from model.loss
  std::string output = {};  ///< "layer" or "layer:1"; empty: the last layer
  std::unique_ptr<Loss> loss;
  double weight = 1;
  /// Label columns [first, last) of the data; without a value: all columns that are no weights.
  std::optional<std::pair<std::int64_t, std::int64_t>> columns = {};
  std::string label_name = {};  ///< instead: the name of a target, which name_labels() looks up
  /// The label column with the weights of the samples; -1: all are 1.
  std::int64_t weight_column = -1;
  std::string weight_name = {};  ///< instead: the name of a target
  /// A row per class: a class index in a label column is replaced by its row. Empty: labels stay as they are.
  std::vector<std::vector<float>> table = {};
  std::string where = {};  ///< in the configuration
  Shape shape = {};        ///< of the output, per sample; set by Heads::prepare()

  /// "head digit: " for messages; empty for a head without a name.
  std::string prefix() const { return name.empty() ? "" : "head " + name + ": "; }
};

/// All labels of one microshard: n x width() values of 4 bytes per head, and n weights if the head has
/// some, one head after the other.
struct LabelBlock {
  const void* data = nullptr;  ///< null: there are no labels
  std::int64_t columns = 0;    ///< label columns of the data set that they come from
};

class Heads {
 public:
  explicit Heads(std::vector<Head> heads);
  /// One head on the graph's last layer.
  explicit Heads(std::unique_ptr<Loss> loss);

  int size() const { return static_cast<int>(heads_.size()); }
  const Head& operator[](int head) const { return heads_[static_cast<std::size_t>(head)]; }
  auto begin() const { return heads_.begin(); }
  auto end() const { return heads_.end(); }
  bool takes_labels() const;
  bool counts_labels() const;
  /// The head whose accuracy is the model's: the only one with classes. Null if there is none, or several.
  const Head* only_classifier() const;

  /// Adds the outputs that the heads read to the graph. Call before its finish().
  void add_outputs(Graph& graph) const;
  /// Sets the heads' shapes and prepares the losses on the device. Call after the graph's finish().
  void prepare(const Graph& graph, Device& device);
  /// Looks up the columns of heads that name theirs. `targets`: the data's label columns, by name, one after
  /// the other; empty: they have no names. Throws Error(config).
  void name_labels(std::span<const NamedShape> targets);
  /// Announces a data set with `columns` label columns. Throws Error(config) if they do not fit.
  void expect_columns(std::int64_t columns);

  /// The columns [first, last) of `columns` that a head reads. Throws Error(config) if they do not exist.
  std::pair<std::int64_t, std::int64_t> columns_of(const Head& head, std::int64_t columns) const;
  /// Which labels these columns may hold.
  LabelRule rule(const Head& head, std::int64_t columns) const;

  /// The form, and the number per sample, of the labels that a head's loss gets from `columns` columns.
  LabelForm form(const Head& head, std::int64_t columns) const;
  std::int64_t width(const Head& head, std::int64_t columns) const;

  /// Values of 4 bytes per sample in the largest expected LabelBlock.
  std::int64_t label_words() const { return label_words_; }
  /// Arranges the labels of n samples as a block. The block lies in `out` (n x label_words()), or is `labels`
  /// itself if they need no change.
  LabelBlock arrange(const Labels& labels, std::int64_t n, void* out) const;
  /// A head's part of a block.
  Labels labels_of(int head, const LabelBlock& block, std::int64_t n) const;
  /// The size of a block.
  std::size_t bytes(const LabelBlock& block, std::int64_t n) const;
  /// Counts the labels of a block in host memory, into counts[head].
  void count(const LabelBlock& block, std::int64_t n, std::span<LossCounts> counts) const;

 private:
  std::int64_t words(const Head& head, std::int64_t columns) const;
  std::int64_t words(std::int64_t columns) const;
  std::pair<std::int64_t, std::int64_t> columns_without_weights(const Head& head, std::int64_t columns) const;

  std::vector<Head> heads_;
  std::int64_t label_words_ = 0;
  bool expected_ = false;
};

/// Reads the section `model`: its `loss` (a head without a name) or its list `heads`, options of
/// heads_options.h. Throws Error(config).
Heads heads_from_config(const Params& model);
/// The options of a head.
std::span<const ParamSpec> head_table();

}  // namespace lockstep
