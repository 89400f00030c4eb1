// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Ready-made model functions over a small table, on any number of ranks: what they learn, that they are the
// same as written out in YAML, and the same bits on one and two threads. The numbers are the same constants
// on any number of ranks.
#include "api/ready_made.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <fstream>

#include "config/params.h"
#include "core/error.h"
#include "run/sections/config.h"
#include "session/run_state.h"
#include "support/estimator_run.h"

namespace lockstep {
namespace {

using testing::HasSubstr;

constexpr int kRows = 120;

/// 120 people: `paid` depends on age, colour and town; `bill` is a sum of terms of each.
std::string table() {
  static const std::string path = [] {
    std::string made = fresh_run_dir("table") + ".csv";
    if (test_world().rank() == 0) {
      std::ofstream file(made);
      file << "age,colour,town,comment,paid,bill\n";
      const char* const colours[] = {"red", "green", "blue"};
      const char* const towns[] = {"Ulm", "Bonn", "Jena", "Kiel"};
      for (int i = 0; i < kRows; ++i) {
        const int age = (i * 37) % 60, colour = (i * 7) % 3, town = (i / 3) % 4;
        const double bill = 0.05 * age + (colour == 1 ? 1.5 : 0) + 0.5 * town;
        file << age * 0.1 << ',' << colours[colour] << ',' << towns[town] << ",\"a, b\","
             << (bill > 2.5 ? "yes" : "no") << ',' << bill << '\n';
      }
    }
    test_world().barrier("the table is written");
    return made;
  }();
  return path;
}

const std::vector<TableColumn>& flat_columns() {
  static const std::vector<TableColumn> columns{numeric_column("age"), category_column("colour"),
                                                category_column("town", {"Bonn", "Jena", "Kiel", "Ulm"})};
  return columns;
}
const std::vector<TableColumn>& columns_with_embedding() {
  static const std::vector<TableColumn> columns{numeric_column("age"), embedding_column("town", 2),
                                                category_column("colour", {"red", "green", "blue"})};
  return columns;
}

InputFunction classes(const std::vector<TableColumn>& columns) {
  return [&columns] {
    return table_input(columns, {.path = table(), .labels = "paid", .classes = {"no", "yes"}});
  };
}
InputFunction bills(const std::vector<TableColumn>& columns) {
  return [&columns] { return table_input(columns, {.path = table(), .labels = "bill"}); };
}

RunConfig run_in(const std::string& run_dir, int threads = 1) {
  return {.model_dir = run_dir,
          .train = {.batch_size = 24, .epochs = 20},
          .general = {.seed = 3, .shards = 4, .threads = threads},
          .checkpoint = {.every_epochs = 0}};
}

std::string digest_of(const std::string& run_dir) {
  return find_checkpoint(test_world(), run_dir, "").header.digest;
}

struct Trained {
  EvaluationOutcome evaluation;
  std::string digest, yaml;
};
Trained trained(const std::string& name, const ModelFunction& model, const InputFunction& input,
                int threads = 1) {
  const std::string run_dir = fresh_run_dir(name);
  Estimator estimator(test_environment(), model, run_in(run_dir, threads));
  estimator.train(input);
  return {estimator.evaluate(input), digest_of(run_dir), estimator.configuration(Mode::train, input)};
}

/// The digest of the same training from YAML.
std::string digest_of_yaml(const std::string& name, const std::string& yaml) {
  const std::string run_dir = fresh_run_dir(name + "_yaml");
  Estimator estimator(test_environment(), config_from_text(yaml, "yaml"), run_dir);
  estimator.train(InputFunction());
  return digest_of(run_dir);
}

std::string written_out(const std::string& data, const std::string& model, const std::string& optimizer) {
  return fmt::format(
      "seed: 3\nshards: 4\nthreads: 1\ndata: {{format: csv, path: {}, header: true, "
      "{}}}\nmodel:\n{}\noptimizer: "
      "{}\ntrain: {{batch_size: 24, epochs: 20}}\ncheckpoint: {{every_epochs: 0}}\n",
      table(), data, model, optimizer);
}

constexpr const char* kFlat =
    "columns: [age, colour, town], categories: {colour: auto, town: [Bonn, Jena, Kiel, Ulm]}";

TEST(ReadyMade, LinearClassifierIsTheYamlOfOneLayerWithFtrl) {
  const Trained run =
      trained("linear_classifier", linear_classifier({.columns = flat_columns()}), classes(flat_columns()));
  EXPECT_EQ(run.evaluation.samples, kRows);
  EXPECT_GT(run.evaluation.value("accuracy"), 0.9);
  EXPECT_GT(run.evaluation.value("auc_roc"), 0.95);
  EXPECT_GT(run.evaluation.value("auc_pr"), 0.95);
  EXPECT_EQ(
      run.digest,
      digest_of_yaml("linear_classifier",
                     written_out(fmt::format("{}, labels: paid, classes: [\"no\", \"yes\"]", kFlat),
                                 "  layers: [dense: {name: linear, units: 2, kernel_initializer: zeros}]\n"
                                 "  loss: softmax_cross_entropy",
                                 "{ftrl: {learning_rate: 0.2}}")));
}

TEST(ReadyMade, LinearRegressorFindsTheTerms) {
  const Trained run =
      trained("linear_regressor", linear_regressor({.columns = flat_columns()}), bills(flat_columns()));
  EXPECT_LT(run.evaluation.value("root_mean_squared_error"), 0.3);
}

TEST(ReadyMade, DnnClassifierWithAnEmbeddingIsTheYamlOfItsLayers) {
  const Trained run =
      trained("dnn_classifier",
              dnn_classifier({.hidden_units = {8, 4}, .columns = columns_with_embedding(), .dropout = 0.1}),
              classes(columns_with_embedding()), 2);
  EXPECT_EQ(run.evaluation.samples, kRows);
  EXPECT_GT(run.evaluation.value("accuracy"), 0.7);
  const std::string yaml = written_out(
      "inputs: {table: {columns: [age, colour], categories: {colour: [red, green, blue]}, labels: paid, "
      "classes: "
      "[\"no\", \"yes\"]}, town: {columns: [town], categories: {town: auto}, label_column: null}}",
      "  layers:\n"
      "    - dense: {name: embedding_town, units: 2, bias: false, inputs: town, kernel_initializer: "
      "{truncated_normal: {stddev: 0.7071067811865475}}}\n"
      "    - concat: {inputs: [table, embedding_town]}\n"
      "    - dense: {name: hidden1, units: 8}\n    - relu\n    - dropout: {rate: 0.1}\n"
      "    - dense: {name: hidden2, units: 4}\n    - relu\n    - dropout: {rate: 0.1}\n"
      "    - dense: {name: logits, units: 2}\n"
      "  loss: softmax_cross_entropy",
      "{adagrad: {learning_rate: 0.05}}");
  EXPECT_EQ(run.digest, digest_of_yaml("dnn_classifier", yaml));  // on one thread
}

TEST(ReadyMade, DnnRegressorTakesOtherActivationsAndOptimizers) {
  const Trained run =
      trained("dnn_regressor",
              dnn_regressor({.hidden_units = {16},
                             .columns = columns_with_embedding(),
                             .activation = {"tanh"},
                             .train_op = {.optimizer = optimizers::adam({.learning_rate = 0.02})}}),
              bills(columns_with_embedding()));
  EXPECT_LT(run.evaluation.value("root_mean_squared_error"), 0.4);
  EXPECT_THAT(run.yaml, HasSubstr("tanh"));
  EXPECT_THAT(run.yaml, HasSubstr("adam"));
  EXPECT_EQ(run.digest, digest_of_yaml("dnn_regressor", run.yaml));
}

TEST(ReadyMade, WithoutColumnsTheyTakeSamplesOfAnyShape) {
  const std::string run_dir = fresh_run_dir("any_shape");
  Estimator estimator(test_environment(), linear_classifier({.n_classes = 3}), run_in(run_dir));
  estimator.train(class_input());
  EXPECT_GT(estimator.evaluate(class_input("eval", 31)).value("accuracy"), 0.5);
}

TEST(ReadyMade, TheRateOfLinearModelsFallsWithTheNumberOfColumns) {
  std::vector<TableColumn> many;
  for (int i = 0; i < 100; ++i) many.push_back(numeric_column(fmt::format("x{}", i)));
  const auto optimizer = [](const std::vector<TableColumn>& columns) {
    const EstimatorSpec spec =
        linear_regressor({.columns = columns})(Features(), LabelColumns(), Mode::train, Params());
    return spec.train_op.optimizer.options.find("learning_rate")->text;
  };
  EXPECT_EQ(optimizer(many), "0.1");
  EXPECT_EQ(optimizer({many.begin(), many.begin() + 9}), "0.2");  // 1/3 is larger
}

TEST(ReadyMade, WhatMakesNoSenseIsRefused) {
  const auto model = [](const ModelFunction& function) {
    return function(Features(), LabelColumns(), Mode::train, Params());
  };
  EXPECT_THROW(model(linear_classifier({.n_classes = 1})), Error);
  EXPECT_THROW(model(dnn_classifier({.hidden_units = {}})), Error);
  EXPECT_THROW(model(dnn_regressor({.hidden_units = {4}, .label_columns = 0})), Error);
  EXPECT_THROW(table_input({}, {.path = "x.csv"}), Error);
  EXPECT_THROW(table_input({numeric_column("a"), category_column("a")}, {.path = "x.csv"}), Error);
  EXPECT_THROW(table_input({embedding_column("a", 0)}, {.path = "x.csv"}), Error);
}

}  // namespace
}  // namespace lockstep
