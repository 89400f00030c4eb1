// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The section `model` of a configuration, and what is made of it: graph, heads, variables. Local to each
// rank: no communication. Every rank gets the same.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "config/params.h"
#include "core/dtype.h"
#include "data/used_dataset.h"
#include "model/graph.h"
#include "model/heads.h"
#include "model/variable_store.h"
#include "optim/regularizer.h"
#include "train/step_metrics.h"

namespace lockstep {

struct ModelOptions {
  Params section;  ///< checked against model_table()
  Node layers = {};
  std::vector<RegularizationRule> regularization;
  std::vector<FreezeRule> frozen = {};
  std::function<bool(const std::string& variable)> frozen_variables = {};  ///< null: no others
  bool report_accuracy = true;
};

/// Options of the section `model`.
std::span<const ParamSpec> model_table();
/// The options of a section `model`. Makes layers and losses once, so that all mistakes show before data is
/// read. `block_names`: names that the list of layers could have had before it was expanded, for advice.
/// Throws Error(config) with position.
ModelOptions model_options(const Node& section, std::span<const std::string> block_names = {});

struct Model {
  std::unique_ptr<Graph> graph;
  std::unique_ptr<VariableStore> variables;
  std::unique_ptr<Heads> heads;
  std::vector<RegularizationRule> regularization;
  bool report_accuracy = true;  ///< the configuration asks for accuracy
  /// One number called accuracy is reported.
  bool accuracy() const { return report_accuracy && heads->only_classifier() != nullptr; }
  /// This part of the results is reported.
  bool reports(std::string_view part) const { return report_accuracy || !is_accuracy(part); }
};

/// What decides how a model's values and gradients are held.
struct ModelStorage {
  DType activations = DType::f32;
  Recompute recompute{};        ///< marked
  std::int64_t batch_size = 1;  ///< samples per global step
  /// The gradient of a table stays sparse if a step touches at most this share of its rows.
  double sparse_below = 0;
  /// False: the gradient of this table stays dense, whatever sparse_below says; null: true.
  std::function<bool(std::string_view)> takes_rows = {};
  bool updates = false;  ///< variables are updated: there are gradients and an optimizer's slots
  int slots = 0;         ///< of the optimizer
  int slot_ranks = 1;    ///< over which the slots of dense variables are distributed
  /// The memory of `device` that this rank may use; 0: not known.
  double memory_bytes = 0;
};

/// What a rank holds of a model from the first step to the last, in bytes: without activations and data.
struct ModelMemory {
  double values = 0, gradients = 0, slots = 0;
  double total() const { return values + gradients + slots; }
};
/// The memory of a model, before or after VariableStore::commit().
ModelMemory model_memory(const VariableStore& variables, const ModelStorage& storage);

/// The graph for samples with these inputs (Dataset::input_shapes()), with allocated, uninitialised variables
/// on `device`. Throws Error(device) before it allocates anything if the model is larger than the memory.
Model make_model(const ModelOptions& options, std::span<const NamedShape> inputs, const ModelStorage& storage,
                 Device& device);
/// Checks that a data set fits the model: label columns and, unless the set is only described, values. Throws
/// Error(config) or Error(data).
void check_labels(Model& model, const UsedDataset& data, bool described = false);

}  // namespace lockstep
