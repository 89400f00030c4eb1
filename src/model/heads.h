// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Heads: what the model is judged by. A head is an output of the graph, a loss, a weight, and its labels
// among the data's label columns, as they are or looked up by class in a table. The model's loss is the sum
// of the heads' losses times their weights.
//
// Labels are arranged head by head, as each loss takes them (LabelBlock), in host memory; a device gets a
// copy of the whole block.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/graph.h"
#include "model/loss.h"

namespace lockstep {

struct Head {
  std::string name;    ///< empty: the only one, from model.loss
  std::string output;  ///< "layer" or "layer:1"; empty: the last layer
  std::unique_ptr<Loss> loss;
  double weight = 1;
  /// Label columns [first, last) of the data; all without.
  std::optional<std::pair<std::int64_t, std::int64_t>> columns = {};
  /// A row per class, by which a class index in a label column is replaced; empty: the labels themselves.
  std::vector<std::vector<float>> table = {};
  std::string where = {};  ///< in the configuration
  Shape shape = {};        ///< of the output, per sample; of Heads::prepare()

  /// "head digit: ", or nothing for the only one.
  std::string prefix() const { return name.empty() ? "" : "head " + name + ": "; }
};

/// All labels of one microshard: for each head n x width() values of 4 bytes, one head behind the other.
/// `columns`: those of the data that they were made from.
struct LabelBlock {
  const void* data = nullptr;  ///< null: there are no labels
  std::int64_t columns = 0;
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
  /// The only head with classes, whose accuracy is the model's; null if there is none, or several.
  const Head* only_classifier() const;

  /// Names the outputs that the heads read; before the graph's finish().
  void add_outputs(Graph& graph) const;
  /// After it: shapes, and the losses' memory on the device.
  void prepare(const Graph& graph, Device& device);
  /// Label columns of a data set that will come: once for each. Throws Error(config) if they do not fit.
  void expect_columns(std::int64_t columns);

  /// Which of `columns` columns a head reads: [first, last). Throws Error(config) if they are not there.
  std::pair<std::int64_t, std::int64_t> columns_of(const Head& head, std::int64_t columns) const;
  /// Which labels may stand in these columns.
  LabelRule rule(const Head& head, std::int64_t columns) const;

  /// Values of 4 bytes per sample that the largest expected LabelBlock needs.
  std::int64_t label_words() const { return label_words_; }
  /// `labels` of n samples as a block: in `out` (n x label_words()), or where they are if nothing is to be
  /// done.
  LabelBlock arrange(const Labels& labels, std::int64_t n, void* out) const;
  /// A head's part of a block, which lies at `data` (the block's own place, or a copy).
  Labels labels_of(int head, const LabelBlock& block, std::int64_t n) const;
  /// All labels in a block are values: the bytes of it.
  std::size_t bytes(const LabelBlock& block, std::int64_t n) const;
  /// Of a block in host memory, into counts[head].
  void count(const LabelBlock& block, std::int64_t n, std::span<LossCounts> counts) const;

 private:
  std::int64_t width(const Head& head, std::int64_t columns) const;
  LabelForm form(const Head& head, std::int64_t columns) const;
  std::int64_t words(std::int64_t columns) const;

  std::vector<Head> heads_;
  std::int64_t label_words_ = 0;
  bool expected_ = false;
};

/// From the section `model`: its `loss` (a head without a name), or its list `heads`. Throws Error(config).
Heads heads_from_config(const Params& model);
/// Options of a head.
std::span<const ParamSpec> head_table();

}  // namespace lockstep
