// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Lists of metrics in a configuration: names, common options, and errors for metrics that do not fit.
#include <limits>
#include <set>

#include "config/named_options.h"
#include "metric_testing.h"

namespace lockstep {
namespace {

std::string error_of_list(const std::string& yaml) {
  try {
    metrics_from_config(parse_yaml(yaml, "test"));
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::config);
    EXPECT_NE(error.where().find("test"), std::string::npos) << error.what();
    return error.what();
  }
  return "nothing was thrown";
}

void expect_says(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(MetricList, HasNamesAndCommonOptions) {
  EXPECT_TRUE(metrics_from_config(Node{}).empty());
  const auto specs = metrics_from_config(parse_yaml(
      "[accuracy, {top_k: {k: 3, name: top_3}}, {f1: {head: tags, predictions: sigmoid}}, top_k]", "test"));
  ASSERT_EQ(specs.size(), 4U);
  EXPECT_EQ(specs[1].name, "top_3");
  EXPECT_EQ(specs[1].params.integer("k"), 3);
  EXPECT_EQ(specs[2].name, "f1");
  EXPECT_EQ(specs[2].head, "tags");
  EXPECT_EQ(specs[2].transform, MetricSpec::Transform::sigmoid);
  EXPECT_EQ(specs[2].kind, PredictionKind::labels);
  EXPECT_EQ(specs[3].transform, MetricSpec::Transform::of_loss);
}

TEST(MetricList, ErrorsSuggestTheNearestName) {
  expect_says(error_of_list("[acuracy]"), "Did you mean 'accuracy'?");
  expect_says(error_of_list("[{top_k: {kk: 3}}]"), "unknown key 'kk' in metric top_k");
  expect_says(error_of_list("[top_k, {top_k: {k: 3}}]"), "two metrics are called 'top_k'");
  expect_says(error_of_list("accuracy"), "not a list");
  expect_says(error_of_list("[{accuracy: {name: loss}}]"), "means something else");
  expect_says(error_of_list("[{accuracy: {name: a/b}}]"), "no name for a metric");
  expect_says(error_of_list("[{f1: {average: mikro}}]"), "average");
}

TEST(MetricList, EveryMetricIsInTheTableOnceWithHelp) {
  std::set<std::string_view> names;
  for (const MetricEntry& entry : metric_table()) {
    EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
    EXPECT_FALSE(entry.help.empty()) << entry.name;
  }
  EXPECT_EQ(names.size(), 24U);
}

MetricInput input_of(PredictionKind kind, const Shape& output, bool dense, std::int64_t columns) {
  MetricInput input;
  input.output = output;
  input.predictions = kind;
  input.dense_labels = dense;
  input.label_columns = columns;
  input.num_samples = 1000;
  return input;
}

TEST(MetricRefusal, ErrorsStateWhyAMetricDoesNotFit) {
  using enum PredictionKind;
  const MetricInput ten = input_of(classes, Shape{10}, false, 1), two = input_of(classes, Shape{2}, false, 1),
                    tags = input_of(labels, Shape{5}, true, 5), numbers = input_of(values, Shape{3}, true, 3);
  expect_says(refusal("{top_k: {k: 3}}", tags), "needs exclusive classes");
  expect_says(refusal("mean_iou", tags), "needs classes, but there are 5 labels");
  expect_says(refusal("auc_roc", numbers), "needs probabilities");
  expect_says(refusal("f1", numbers), "needs probabilities");
  expect_says(refusal("accuracy", numbers), "needs probabilities");
  expect_says(refusal("{recall_at_k: {k: 2}}", numbers), "needs classes or labels");
  expect_says(refusal("mean_squared_error", ten), "take 10 labels per sample, but the head has 1 class");
  expect_says(refusal("accuracy", input_of(classes, Shape{4, 10}, false, 1)),
              "take 4 class indices or 40 label");
  expect_says(refusal("f1", input_of(labels, Shape{5}, true, 4)), "take 5 labels per sample");
  expect_says(refusal("{precision_at_k: {k: 2}}", input_of(labels, Shape{5}, true, 4)), "do not fit");
  expect_says(refusal("{f1: {average: binary}}", ten), "binary, but there are 10");
  expect_says(refusal("{auc_roc: {average: binary}}", tags), "binary, but there are 5");
  expect_says(refusal("{f1: {thresholds: 0.3}}", ten), "act on labels");
  expect_says(refusal("{f1: {thresholds: best_f1}}", ten), "act on labels");
  expect_says(refusal("{f1: {thresholds: [0.1, 0.2]}}", tags), "2 thresholds for 5 labels");
  expect_says(refusal("{f1: {thresholds: high}}", tags), "thresholds");
  expect_says(refusal("{f1: {exact: true}}", tags), "best_f1 only");
  expect_says(refusal("{accuracy: {threshold: 0.3}}", ten), "the largest counts");
  expect_says(refusal("{confusion_matrix: {threshold: 0.3}}", ten), "the largest counts");
  expect_says(refusal("{top_k: {k: 11}}", ten), "11 of 10 classes");
  expect_says(refusal("{recall_at_k: {k: 1, class_id: 5}}", tags), "none of 5 classes");
  expect_says(refusal("{auc_roc: {exact: true, memory_mb: 0.01}}", tags), "memory_mb");
  expect_says(refusal("{auc_roc: {exact: true, num_thresholds: 100}}", tags), "has no effect with exact");
  expect_says(refusal("accuracy", input_of(classes, Shape{10}, false, 0)), "has none");
  expect_says(refusal("accuracy", input_of(classes, Shape{1}, false, 1)), "at least two classes");
  EXPECT_EQ(refusal("mean", input_of(values, Shape{3}, false, 0)), "nothing was thrown");
  EXPECT_EQ(refusal("{f1: {average: binary}}", two), "nothing was thrown");
  // The option determines how the outputs are read, whatever the loss.
  EXPECT_EQ(refusal("{auc_roc: {predictions: sigmoid}}", numbers), "nothing was thrown");
  EXPECT_EQ(refusal("{mean_absolute_error: {predictions: values}}", tags), "nothing was thrown");
}

TEST(MetricInput, MetricsIgnoreIndexTakesPrecedence) {
  Samples samples = random_samples(4, Shape{3}, PredictionKind::classes);
  samples.outputs = {1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0};
  samples.indices = {0, 1, 1, 2};
  samples.input.ignore_index = 0;
  EXPECT_EQ(value_of("accuracy", samples), 1.0 / 3);
  EXPECT_EQ(value_of("{accuracy: {ignore_index: 2}}", samples), 2.0 / 3);
}

TEST(MetricInput, IgnoredLabelsDoNotCount) {
  Samples classes = random_samples(3, Shape{2}, PredictionKind::classes);
  classes.outputs = {1, 0, 1, 0, 0, 1};
  classes.indices = {0, -1, 0};
  EXPECT_EQ(value_of("accuracy", classes), 0.5);
  EXPECT_EQ(value_of("{f1: {average: micro}}", classes), 0.5);
  EXPECT_EQ(value_of("{recall_at_k: {k: 1}}", classes), 0.5);
  Samples labels = random_samples(2, Shape{2}, PredictionKind::labels);
  labels.predictions = labels.outputs = {0.9F, 0.1F, 0.9F, 0.9F};
  labels.rows = {1, std::numeric_limits<float>::quiet_NaN(), 1, 0};
  EXPECT_EQ(value_of("accuracy", labels), 2.0 / 3);
  EXPECT_EQ(value_of("{precision_at_k: {k: 2}}", labels), 2.0 / 3);  // the first has one place
  labels.input.predictions = PredictionKind::values;
  expect_near(value_of("mean_absolute_error", labels, false), (0.1 + 0.1 + 0.9) / 3, "mae", 1e-6);
}

TEST(MetricInput, LabelOutOfRangeIsAnError) {
  Samples samples = random_samples(2, Shape{3}, PredictionKind::classes);
  samples.indices = {0, 3};
  for (const char* yaml : {"accuracy", "confusion_matrix", "f1"}) {
    const auto metric = metric_from(yaml, samples.input);
    EXPECT_THROW(report_of(*metric, samples, {2}), Error) << yaml;
  }
}

}  // namespace
}  // namespace lockstep
