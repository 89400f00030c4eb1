// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "api/ready_made.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "config/params.h"
#include "core/error.h"

namespace lockstep {

namespace {

constexpr double kLinearRate = 0.2, kNetRate = 0.05;

Error wrong(const char* what, const char* advice) { return Error(ErrorKind::config, what, "", advice); }

TrainOp with_optimizer(TrainOp op, const Choice& fallback) {
  if (op.optimizer.name.empty()) op.optimizer = fallback;
  return op;
}

Choice linear_optimizer(const std::vector<TableColumn>& columns) {
  const double rate = columns.empty()
                          ? kLinearRate
                          : std::min(kLinearRate, 1 / std::sqrt(static_cast<double>(columns.size())));
  return optimizers::ftrl({.learning_rate = rate});
}

/// The only layer of a linear model. All of it begins at zero.
LayerOutput linear_layer(const LayerOutput& features, std::int64_t units) {
  return layers::dense(features,
                       {.name = "linear", .units = units, .kernel_initializer = initializers::zeros()});
}

template <typename Options>
LayerOutput hidden_layers(LayerOutput x, const Options& options) {
  for (std::size_t i = 0; i < options.hidden_units.size(); ++i) {
    x = layers::dense(x, {.name = fmt::format("hidden{}", i + 1), .units = options.hidden_units[i]});
    x = add_layer(x, options.activation);
    if (options.dropout > 0) x = layers::dropout(x, {.rate = options.dropout});
  }
  return x;
}

EstimatorSpec classifier(const LabelColumns& labels, const LayerOutput& logits, const TrainOp& op) {
  return {.loss = losses::softmax_cross_entropy(labels, logits),
          .train_op = op,
          .eval_metrics = {metrics::auc_roc(), metrics::auc_pr()}};
}

EstimatorSpec regressor(const LabelColumns& labels, const LayerOutput& predictions, const TrainOp& op) {
  return {.loss = losses::mean_squared_error(labels, predictions),
          .train_op = op,
          .eval_metrics = {metrics::root_mean_squared_error()}};
}

void check_classes(std::int64_t n_classes) {
  if (n_classes < 2) throw wrong("a classifier with less than two classes", "Set n_classes to 2 or more.");
}
void check_label_columns(std::int64_t label_columns) {
  if (label_columns < 1) throw wrong("a regressor that predicts nothing", "Set label_columns to 1 or more.");
}
void check_hidden(const std::vector<std::int64_t>& hidden_units) {
  if (hidden_units.empty())
    throw wrong("a net without hidden layers", "Set hidden_units, or take a linear model.");
}

}  // namespace

ModelFunction linear_classifier(LinearClassifierOptions options) {
  return [options = std::move(options)](const Features& features, const LabelColumns& labels, Mode,
                                        const Params&) {
    check_classes(options.n_classes);
    return classifier(labels, linear_layer(table_features(features, options.columns), options.n_classes),
                      with_optimizer(options.train_op, linear_optimizer(options.columns)));
  };
}

ModelFunction linear_regressor(LinearRegressorOptions options) {
  return [options = std::move(options)](const Features& features, const LabelColumns& labels, Mode,
                                        const Params&) {
    check_label_columns(options.label_columns);
    return regressor(labels, linear_layer(table_features(features, options.columns), options.label_columns),
                     with_optimizer(options.train_op, linear_optimizer(options.columns)));
  };
}

ModelFunction dnn_classifier(DnnClassifierOptions options) {
  return [options = std::move(options)](const Features& features, const LabelColumns& labels, Mode,
                                        const Params&) {
    check_hidden(options.hidden_units);
    check_classes(options.n_classes);
    const LayerOutput x = hidden_layers(table_features(features, options.columns), options);
    return classifier(labels, layers::dense(x, {.name = "logits", .units = options.n_classes}),
                      with_optimizer(options.train_op, optimizers::adagrad({.learning_rate = kNetRate})));
  };
}

ModelFunction dnn_regressor(DnnRegressorOptions options) {
  return [options = std::move(options)](const Features& features, const LabelColumns& labels, Mode,
                                        const Params&) {
    check_hidden(options.hidden_units);
    check_label_columns(options.label_columns);
    const LayerOutput x = hidden_layers(table_features(features, options.columns), options);
    return regressor(labels, layers::dense(x, {.name = "predictions", .units = options.label_columns}),
                     with_optimizer(options.train_op, optimizers::adagrad({.learning_rate = kNetRate})));
  };
}

}  // namespace lockstep
