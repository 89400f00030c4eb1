// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Weights of samples: a sample of weight 3 counts as three of them, and one of weight 0 does not count, in
// every metric that compares with labels.
#include <limits>
#include <set>

#include "metric_testing.h"
#include "model/metric_table.h"

namespace lockstep {
namespace {

constexpr std::int64_t kSamples = 40;

/// Weights 0, 1, 2, 3.
Samples weighted(Samples samples) {
  for (std::int64_t i = 0; i < samples.n; ++i)
    samples.weights.push_back(static_cast<float>(std::floor(uniform(77, static_cast<std::size_t>(i)) * 4)));
  return samples;
}

/// The same without weights: each sample as often as its weight says.
Samples repeated(const Samples& samples) {
  Samples all = samples;
  all.weights.clear();
  all.outputs.clear();
  all.predictions.clear();
  all.indices.clear();
  all.rows.clear();
  all.n = 0;
  const auto append = [](auto& to, const auto& from, std::int64_t i, std::int64_t each) {
    if (!from.empty()) to.insert(to.end(), from.begin() + i * each, from.begin() + (i + 1) * each);
  };
  for (std::int64_t i = 0; i < samples.n; ++i)
    for (int time = 0; time < static_cast<int>(samples.weights[static_cast<std::size_t>(i)]); ++time) {
      append(all.outputs, samples.outputs, i, samples.elements());
      append(all.predictions, samples.predictions, i, samples.elements());
      append(all.indices, samples.indices, i, samples.input.label_columns);
      append(all.rows, samples.rows, i, samples.input.label_columns);
      ++all.n;
    }
  all.input.num_samples = all.n;
  return all;
}

void expect_as_repeated(const std::string& yaml, const Samples& samples, bool exact = true) {
  const Samples same = repeated(samples);
  Samples unweighted = samples;
  unweighted.weights.clear();
  const MetricReport report = report_of(yaml, samples, exact), expected = report_of(yaml, same, exact);
  ASSERT_EQ(report.value.has_value(), expected.value.has_value()) << yaml;
  if (report.value) {
    expect_near(*report.value, *expected.value, yaml);
    EXPECT_NE(*report.value, *report_of(yaml, unweighted, exact).value)
        << yaml << ": the weights make no difference, and the test shows nothing";
  }
  ASSERT_EQ(report.tables.size(), expected.tables.size()) << yaml;
  for (std::size_t t = 0; t < expected.tables.size(); ++t) {
    ASSERT_EQ(report.tables[t].values.size(), expected.tables[t].values.size()) << yaml;
    for (std::size_t i = 0; i < expected.tables[t].values.size(); ++i)
      expect_near(report.tables[t].values[i], expected.tables[t].values[i], yaml);
  }
}

const std::vector<std::string> kOfClasses = {"accuracy",
                                             "hamming_loss",
                                             "subset_accuracy",
                                             "{top_k: {k: 2}}",
                                             "confusion_matrix",
                                             "mean_iou",
                                             "{mean_per_class_accuracy: {per_class: true}}",
                                             "perplexity",
                                             "{precision: {average: per_class}}",
                                             "{recall: {average: macro}}",
                                             "{f1: {average: macro}}",
                                             "{precision_at_k: {k: 2, class_id: 1}}",
                                             "{recall_at_k: {k: 2}}",
                                             "{average_precision_at_k: {k: 3}}",
                                             "{auc_roc: {average: per_class}}",
                                             "{auc_pr: {average: macro, curve: true}}",
                                             "{auc_roc: {average: micro, exact: true}}",
                                             "{auc_pr: {average: macro, exact: true, curve: true}}"};
const std::vector<std::string> kOfLabels = {"accuracy",
                                            "hamming_loss",
                                            "subset_accuracy",
                                            "{f1: {average: macro}}",
                                            "{precision: {average: micro}}",
                                            "{f1: {average: macro, thresholds: best_f1}}",
                                            "{f1: {average: macro, thresholds: best_f1, exact: true}}",
                                            "{precision_at_k: {k: 2}}",
                                            "{auc_roc: {average: macro}}",
                                            "{auc_pr: {average: macro, exact: true}}"};
const std::vector<std::string> kOfValues = {"{mean_absolute_error: {per_output: true}}",
                                            "mean_squared_error",
                                            "root_mean_squared_error",
                                            "mean_relative_error",
                                            "{r2: {per_output: true}}",
                                            "{mean_cosine_distance: {normalize: true}}"};

TEST(WeightedMetrics, AWeightIsANumberOfSamples) {
  for (const std::string& yaml : kOfClasses)
    expect_as_repeated(yaml, weighted(random_samples(kSamples, {4}, PredictionKind::classes)),
                       yaml != "perplexity" && yaml.find("average_precision_at_k") == std::string::npos);
  for (const std::string& yaml : kOfLabels)
    expect_as_repeated(yaml, weighted(random_samples(kSamples, {3}, PredictionKind::labels)));
  for (const std::string& yaml : kOfValues)
    expect_as_repeated(yaml, weighted(random_samples(kSamples, {3}, PredictionKind::values)), false);
  for (const char* const yaml : {"accuracy", "subset_accuracy", "mean_iou"})  // several positions
    expect_as_repeated(yaml, weighted(random_samples(kSamples, {2, 2}, PredictionKind::classes)));
}

TEST(WeightedMetrics, EveryMetricWithLabelsIsTested) {
  std::string all;
  for (const auto* const list : {&kOfClasses, &kOfLabels, &kOfValues})
    for (const std::string& yaml : *list) all += yaml + "\n";
  for (const MetricEntry& entry : metric_table().entries())
    EXPECT_TRUE(!entry.needs_labels || all.find(entry.name) != std::string::npos) << entry.name;
}

TEST(WeightedMetrics, FractionsOfWeights) {
  Samples samples = random_samples(3, {2}, PredictionKind::classes);
  samples.outputs = {1, 0, 1, 0, 0, 1};  // predicted: 0, 0, 1
  samples.indices = {0, 1, 1};
  samples.weights = {0.5F, 0.25F, 1.25F};
  EXPECT_EQ(value_of("accuracy", samples), 1.75 / 2);
  EXPECT_EQ(value_of("hamming_loss", samples), 0.25 / 2);
}

TEST(WeightedMetrics, WithoutWeightNothingCountsNotEvenNan) {
  Samples samples = random_samples(2, {2}, PredictionKind::values);
  samples.predictions = {1, 2, std::numeric_limits<float>::quiet_NaN(), 5};
  samples.rows = {1, 4, 0, 0};
  samples.weights = {1, 0};
  EXPECT_EQ(value_of("mean_absolute_error", samples), 1);
  samples.weights = {0, 0};
  EXPECT_EQ(value_of("mean_absolute_error", samples), 0);
}

}  // namespace
}  // namespace lockstep
