// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Heads: the outputs and label columns that they read, and the contents of a label block.
#include "model/heads.h"

#include "model/heads_options.h"
#include "model_testing.h"

namespace lockstep {
namespace {

Heads heads_from(const std::string& yaml) {
  const Node node = parse_yaml(yaml, "test.yaml");
  return heads_from_config(Params(node, kHeadsOptions, "section model"));
}

/// For a trunk of 4 features with outputs a {3} and b {2}.
struct Built {
  explicit Built(const std::string& yaml) : heads(heads_from(yaml)), graph(graph_from(kNet, Shape{4})) {
    heads.add_outputs(graph);
    graph.finish(variables);
    heads.prepare(graph, cpu_device());
  }
  static constexpr const char* kNet =
      "[dense: {name: a, units: 3}, dense: {name: b, units: 2, inputs: features}]";
  Heads heads;
  Graph graph;
  VariableStore variables;
};

void expect_error(const std::function<void()>& work, const std::string& text) {
  try {
    work();
    ADD_FAILURE() << "no error: " << text;
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
  }
}

constexpr const char* kTwo =
    "heads: [{name: digit, output: a, labels: [1, 2]}, "
    "{name: bits, output: b, loss: sigmoid_cross_entropy, weight: 0.5, labels: [1, 2], "
    "label_table: [[0, 0], [0, 1], [1, 1]]}]";

TEST(Heads, ColumnsAndTablesSelectLabels) {
  Built built(kTwo);
  built.heads.expect_columns(2);
  EXPECT_EQ(built.heads[0].shape, Shape{3});
  EXPECT_EQ(built.heads[1].shape, Shape{2});
  EXPECT_EQ(built.heads.label_words(), 3);
  const std::vector<std::int32_t> data = {9, 2, 9, 0, 9, 1};
  std::vector<float> block(9);
  const LabelBlock labels = built.heads.arrange({.indices = data.data(), .columns = 2}, 3, block.data());
  const Labels digit = built.heads.labels_of(0, labels, 3), bits = built.heads.labels_of(1, labels, 3);
  ASSERT_NE(digit.indices, nullptr);
  ASSERT_NE(bits.rows, nullptr);
  EXPECT_EQ(std::vector<std::int32_t>(digit.indices, digit.indices + 3),
            (std::vector<std::int32_t>{2, 0, 1}));
  EXPECT_EQ(std::vector<float>(bits.rows, bits.rows + 6), (std::vector<float>{1, 1, 0, 0, 0, 1}));
}

TEST(Heads, ClassIndicesMayBeStoredAsFloats) {
  Built built(kTwo);
  built.heads.expect_columns(2);
  const std::vector<float> data = {0.5F, 2, 0.25F, 0};
  std::vector<float> block(6);
  const LabelBlock labels = built.heads.arrange({.rows = data.data(), .columns = 2}, 2, block.data());
  const Labels digit = built.heads.labels_of(0, labels, 2);
  ASSERT_NE(digit.indices, nullptr);
  EXPECT_EQ(digit.indices[0], 2);
  EXPECT_EQ(digit.indices[1], 0);
}

TEST(Heads, IgnoredLabelsAreMarkedWithATable) {
  Built built(
      "heads: [{name: x, output: a, loss: {softmax_cross_entropy: {ignore_index: 255}}}, "
      "{name: y, output: b, loss: {mean_squared_error: {ignore_index: 255}}, label_table: [[1, 2], [3, "
      "4]]}]");
  built.heads.expect_columns(1);
  EXPECT_TRUE(built.heads.counts_labels());
  const std::vector<std::int32_t> data = {255, 1};
  std::vector<float> block(6);
  const LabelBlock labels = built.heads.arrange({.indices = data.data(), .columns = 1}, 2, block.data());
  const Labels x = built.heads.labels_of(0, labels, 2), y = built.heads.labels_of(1, labels, 2);
  EXPECT_EQ(x.indices[0], Loss::kIgnoredIndex);
  EXPECT_EQ(x.indices[1], 1);
  EXPECT_TRUE(std::isnan(y.rows[0]) && std::isnan(y.rows[1]));
  EXPECT_EQ(y.rows[2], 3);
  std::vector<LossCounts> counts(2);
  built.heads.count(labels, 2, counts);
  EXPECT_EQ(counts[0].divisor, 1);
  EXPECT_EQ(counts[1].divisor, 2);
  EXPECT_TRUE(built.heads.rule(built.heads[1], 1).allows(255));
  EXPECT_FALSE(built.heads.rule(built.heads[1], 1).allows(2)) << "the table has two rows";
}

TEST(Heads, OneHeadReadsLabelsInPlace) {
  Graph graph = graph_from("[dense: {units: 3}, relu]", Shape{4});
  VariableStore variables;
  Heads heads = heads_from("{}");
  heads.add_outputs(graph);
  graph.finish(variables);
  heads.prepare(graph, cpu_device());
  heads.expect_columns(1);
  EXPECT_EQ(heads.only_classifier(), &heads[0]);
  const std::vector<std::int32_t> data = {2, 1};
  EXPECT_EQ(heads.arrange({.indices = data.data()}, 2, nullptr).data, data.data());
}

TEST(Heads, LayersReadByAHeadAreNotFused) {
  Graph graph = graph_from("[dense: {name: d, units: 3}, relu, dense: {name: e, units: 3}]", Shape{4});
  VariableStore variables;
  Heads heads = heads_from("heads: [{name: x, output: d}, {name: y, output: e}]");
  heads.add_outputs(graph);
  graph.finish(variables);
  const Graph::Calls calls = graph.calls(true);
  EXPECT_EQ(calls.operations.size(), 3U) << "dense, relu, dense";
  EXPECT_EQ(calls.outputs, (std::vector<int>{1, 3}));
}

TEST(Heads, WeightsFollowTheLabelsOfTheirHeadAndWeighItsCount) {
  Built built(
      "heads: [{name: x, output: a, labels: digit, sample_weights: trust, "
      "loss: {softmax_cross_entropy: {ignore_index: 9}}}, "
      "{name: y, output: b, labels: pair, loss: mean_squared_error}]");
  const std::vector<NamedShape> targets = {{"digit", {}}, {"trust", {1}}, {"pair", {2}}};
  built.heads.name_labels(targets);
  built.heads.expect_columns(4);
  EXPECT_EQ(built.heads.label_words(), 4);
  EXPECT_TRUE(built.heads.counts_labels());
  const std::vector<float> data = {2, 0.5F, 10, 11, 9, 4, 20, 21, 1, 0, 30, 31};  // three samples
  std::vector<float> block(12);
  const LabelBlock labels = built.heads.arrange({.rows = data.data(), .columns = 4}, 3, block.data());
  const Labels x = built.heads.labels_of(0, labels, 3), y = built.heads.labels_of(1, labels, 3);
  EXPECT_EQ(std::vector(x.indices, x.indices + 3), (std::vector<std::int32_t>{2, Loss::kIgnoredIndex, 1}));
  EXPECT_EQ(std::vector(x.weights, x.weights + 3), (std::vector<float>{0.5F, 4, 0}));
  EXPECT_EQ(std::vector(y.rows, y.rows + 6), (std::vector<float>{10, 11, 20, 21, 30, 31}));
  EXPECT_EQ(y.weights, nullptr);
  std::vector<LossCounts> counts(2);
  built.heads.count(labels, 3, counts);
  EXPECT_EQ(counts[0].divisor, 0.5) << "the second sample is ignored, the third has no weight";
  EXPECT_EQ(counts[0].positions, 1);
  EXPECT_EQ(counts[1].divisor, 6);
}

TEST(Heads, ColumnsOfWeightsAreNoLabels) {
  const Heads heads = heads_from("{loss: softmax_cross_entropy, sample_weights: 0}");
  EXPECT_EQ(heads.columns_of(heads[0], 2), std::pair(std::int64_t{1}, std::int64_t{2}));
  const Heads middle = heads_from("{loss: mean_squared_error, sample_weights: 1}");
  expect_error([&] { middle.columns_of(middle[0], 3); }, "label column 1 has the weights");
}

TEST(Heads, ErrorsNameTheMistake) {
  expect_error([] { heads_from("{loss: mean, heads: [{name: a}]}"); }, "stands beside loss");
  expect_error([] { heads_from("heads: [{name: a}, {name: a}]"); }, "two heads are named 'a'");
  expect_error([] { heads_from("heads: [{name: a/b}]"); }, "'a/b' is not a name for a head");
  expect_error([] { heads_from("heads: [{name: a, labels: [2, 2]}]"); }, "not a range of columns");
  expect_error([] { heads_from("heads: [{name: a, label_table: [[1], [1, 2]]}]"); }, "row 1 has 2 values");
  expect_error([] { heads_from("heads: [{name: a, label_table: [x]}]"); }, "is not a number");
  expect_error([] { heads_from("heads: [{name: a, loss: mean, label_table: [1]}]"); }, "takes no labels");
  expect_error([] { Built("heads: [{name: x, output: c}, {name: y, output: b}]"); }, "no layer 'c'");
  expect_error([] { Built("heads: [{name: x, output: a}]"); },
               "layer b is read by no other layer and no head");
  expect_error([] { Built(kTwo).heads.expect_columns(1); }, "head digit: its labels are columns [1, 2)");
  expect_error(
      [] {
        Built(
            "heads: [{name: x, output: a}, {name: y, output: b, loss: hinge, label_table: [[0, 2], [1, 0]]}]")
            .heads.expect_columns(1);
      },
      "head y: label_table has 2 for class 0, which is not 0 or 1");
}

}  // namespace
}  // namespace lockstep
