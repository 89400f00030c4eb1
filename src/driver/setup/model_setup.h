// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// From a configuration to what a run is made of: data sets, step plan, graph, variables, loss, optimizer.
// Local to each rank: no communication. Every rank gets the same.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "data/dataset.h"
#include "data/step_plan.h"
#include "driver/config/config.h"
#include "model/graph.h"
#include "model/heads.h"
#include "model/variable_store.h"
#include "optim/optimizer.h"
#include "optim/regularizer.h"
#include "train/evaluation_metrics.h"
#include "train/loss_report.h"

namespace lockstep {

/// Options of the section `model`.
std::span<const ParamSpec> model_table();
/// Keys of the section `data` beside the reader's options: format, train, eval.
std::span<const ParamSpec> data_table();
/// The part of the section `data` that a reader gets for a split ("train" or "eval"): the common options,
/// overridden by the split's own.
Node split_options(const Node& data, std::string_view split);
/// Name of the reader.
std::string data_format(const Node& data);

/// Loads the configuration's plugins, so that what they register is known, then checks everything that needs
/// no data: names and options of reader, layers, loss, metrics, optimizer. Before MPI.
void check_config(const Config& config);

/// One data set of the configuration; null if the split is not there. Reads files.
std::unique_ptr<Dataset> open_split(const Config& config, std::string_view split);

struct Model {
  std::unique_ptr<Graph> graph;
  std::unique_ptr<VariableStore> variables;
  std::unique_ptr<Heads> heads;
  std::vector<RegularizationRule> regularization;
  bool metric_accuracy = true;  ///< asked for
  /// One number called accuracy is reported.
  bool accuracy() const { return metric_accuracy && heads->only_classifier() != nullptr; }
  /// This part of the results is reported.
  bool reports(std::string_view part) const { return metric_accuracy || !is_accuracy(part); }
};
/// Builds the graph for samples of this shape, with allocated but uninitialised variables.
Model make_model(const Config& config, const Shape& features, Device& device);
/// Checks that a data set fits the model: label columns and values.
void check_labels(Model& model, const Dataset& dataset);

/// The metrics of eval.metrics, which fit the model and the evaluation set. Throws Error(config).
std::vector<BoundMetric> evaluation_metrics(const Config& config, const Model& model, const Dataset& eval);

/// What the drift check and the start-up check call "the model": names, shapes and order of the variables.
std::string variable_table_text(const VariableStore& variables);

/// Shards of a run: the configuration's, or the checkpoint's, or one per core of the first launch.
int choose_shards(const Config& config, std::optional<std::int64_t> from_checkpoint, int total_cores);

}  // namespace lockstep
