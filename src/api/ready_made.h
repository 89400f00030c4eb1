// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Model functions of the usual cases, for an Estimator:
//
//   const std::vector<TableColumn> columns = {numeric_column("age"), category_column("sex")};
//   Estimator estimator(ranks, dnn_classifier({.hidden_units = {32, 16}, .columns = columns}),
//                       {.model_dir = "runs/titanic", .train = {.batch_size = 64, .epochs = 20}});
//   estimator.train([&] { return table_input(columns, {.path = "titanic.csv", .labels = "survived"}); });
//
// A classifier has a softmax over its classes, a regressor the mean squared error. Without an optimizer,
// linear models have FTRL with a rate of min(0.2, 1 / sqrt(number of columns)), and 0.2 without columns; nets
// have Adagrad with a rate of 0.05. Those are the defaults of TensorFlow's estimators of these names.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/estimator_spec.h"
#include "api/table_columns.h"

namespace lockstep {

struct LinearClassifierOptions {
  std::int64_t n_classes = 2;
  std::vector<TableColumn> columns = {};  ///< of table_input(); empty: samples with one input of any shape
  TrainOp train_op = {};                  ///< the default optimizer if none is named
};

struct LinearRegressorOptions {
  std::int64_t label_columns = 1;  ///< how many numbers are predicted
  std::vector<TableColumn> columns = {};
  TrainOp train_op = {};
};

struct DnnClassifierOptions {
  std::vector<std::int64_t> hidden_units;  ///< of each hidden layer; not empty
  std::int64_t n_classes = 2;
  std::vector<TableColumn> columns = {};
  Choice activation = {"relu"};  ///< a layer: {"tanh"}, {"leaky_relu", ...}
  double dropout = 0;            ///< after each hidden layer
  TrainOp train_op = {};
};

struct DnnRegressorOptions {
  std::vector<std::int64_t> hidden_units;
  std::int64_t label_columns = 1;
  std::vector<TableColumn> columns = {};
  Choice activation = {"relu"};
  double dropout = 0;
  TrainOp train_op = {};
};

/// Metrics in addition to loss and accuracy: the areas under the curves of ROC, and of precision and recall.
ModelFunction linear_classifier(LinearClassifierOptions options = {});
ModelFunction dnn_classifier(DnnClassifierOptions options);
/// Metric in addition to the loss: the root of the mean squared error.
ModelFunction linear_regressor(LinearRegressorOptions options = {});
ModelFunction dnn_regressor(DnnRegressorOptions options);

}  // namespace lockstep
