// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Helpers of the metrics' tests: a set of samples, a metric from YAML, and its value when the samples are cut
// into microshards and merged along the tree.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "comm/tree.h"
#include "config/yaml_node.h"
#include "core/philox.h"
#include "core/range.h"
#include "kernels/kernel_table.h"
#include "model/metric.h"

namespace lockstep {

struct Samples {
  std::int64_t n = 0;
  MetricInput input;
  std::vector<float> outputs, predictions;
  std::vector<std::int32_t> indices;
  std::vector<float> rows;
  std::vector<float> weights = {};  ///< empty: all 1

  std::int64_t elements() const { return input.output.num_elements(); }
};

/// Uniform in [0, 1).
inline double uniform(std::uint32_t stream, std::size_t i) {
  return static_cast<double>(philox_uniform(philox_words(5, stream, 0, 0, static_cast<std::uint32_t>(i))[0]));
}

/// Outputs in [-2, 2], multiples of `step`, so that there are ties; predictions by softmax or sigmoid.
inline Samples random_samples(std::int64_t n, const Shape& output, PredictionKind kind, double step = 0.25,
                              std::uint32_t stream = 1) {
  Samples samples;
  samples.n = n;
  samples.input.output = output;
  samples.input.predictions = kind;
  samples.input.num_samples = n;
  const std::int64_t positions = output.num_elements() / output.last();
  for (std::int64_t i = 0; i < n * samples.elements(); ++i)
    samples.outputs.push_back(
        static_cast<float>(std::round((uniform(stream, static_cast<std::size_t>(i)) * 4 - 2) / step) * step));
  samples.predictions.resize(samples.outputs.size());
  using enum MetricSpec::Transform;
  transform_outputs(kind == PredictionKind::classes  ? softmax
                    : kind == PredictionKind::labels ? sigmoid
                                                     : none,
                    n, output, samples.outputs.data(), samples.predictions.data());
  if (kind == PredictionKind::classes) {
    samples.input.label_columns = positions;
    for (std::int64_t i = 0; i < n * positions; ++i)
      samples.indices.push_back(static_cast<std::int32_t>(uniform(stream + 100, static_cast<std::size_t>(i)) *
                                                          static_cast<double>(output.last())));
    return samples;
  }
  samples.input.dense_labels = true;
  samples.input.label_columns = samples.elements();
  for (std::size_t i = 0; i < samples.outputs.size(); ++i) {
    const double u = uniform(stream + 100, i);
    samples.rows.push_back(kind == PredictionKind::labels ? (u < 0.4 ? 1.0F : 0.0F)
                                                          : static_cast<float>(u * 6 - 3));
  }
  return samples;
}

inline std::unique_ptr<Metric> metric_from(const std::string& yaml, const MetricInput& input) {
  const std::vector<MetricSpec> specs = metrics_from_config(parse_yaml("[" + yaml + "]", "test"));
  return make_metric(specs.at(0), input);
}

/// `scores`: memory for those of a metric of classes.
inline MetricBatch part_of(const Samples& samples, std::int64_t first, std::int64_t n, unsigned class_parts,
                           std::vector<ClassScore>& scores) {
  MetricBatch batch;
  batch.n = n;
  batch.outputs = samples.outputs.data() + first * samples.elements();
  batch.predictions = samples.predictions.data() + first * samples.elements();
  if (!samples.indices.empty())
    batch.labels.indices = samples.indices.data() + first * samples.input.label_columns;
  else if (!samples.rows.empty())
    batch.labels.rows = samples.rows.data() + first * samples.input.label_columns;
  if (!samples.weights.empty()) batch.labels.weights = samples.weights.data() + first;
  if (class_parts == 0) return batch;
  const Shape& output = samples.input.output;
  const std::int64_t positions = n * output.num_elements() / output.last();
  std::vector<std::int32_t> labels(static_cast<std::size_t>(positions));
  scores.resize(labels.size());
  class_labels(batch.labels, n, output, labels.data());
  cpu_kernels().metric.class_scores({}, positions, output.last(), batch.outputs, labels.data(), class_parts,
                                    scores.data());
  batch.scores = scores.data();
  batch.outputs = nullptr;
  return batch;
}

/// The report if microshard i has sizes[i] samples; their sum is samples.n.
inline MetricReport report_of(const Metric& metric, const Samples& samples,
                              const std::vector<std::int64_t>& sizes) {
  const auto width = static_cast<std::size_t>(metric.width());
  std::vector<std::vector<double>> states(sizes.size(), std::vector<double>(width));
  std::vector<ScoreRecord> records;
  std::int64_t first = 0;
  for (std::size_t shard = 0; shard < sizes.size(); ++shard) {
    std::vector<ClassScore> scores;
    const MetricBatch batch = part_of(samples, first, sizes[shard], metric.class_parts(), scores);
    metric.add(batch, states[shard].data());
    if (metric.records_per_sample() > 0) {
      std::vector<ScoreRecord> own(static_cast<std::size_t>(sizes[shard] * metric.records_per_sample()));
      metric.record(batch, own.data());
      records.insert(records.begin(), own.begin(), own.end());  // in another order than the samples'
    }
    first += sizes[shard];
  }
  EXPECT_EQ(first, samples.n);
  const std::function<void(int, int)> merge = [&](int begin, int end) {
    if (end - begin < 2) return;
    const int middle = begin + tree_left_size(end - begin);
    merge(begin, middle);
    merge(middle, end);
    metric.merge(states[static_cast<std::size_t>(begin)].data(),
                 states[static_cast<std::size_t>(middle)].data());
  };
  merge(0, static_cast<int>(sizes.size()));
  return metric.report(states.front().data(), records);
}

/// Ways to cut n samples, with empty and single ones.
inline std::vector<std::vector<std::int64_t>> cuts(std::int64_t n) {
  std::vector<std::vector<std::int64_t>> all = {{n}, {0, n}, {n - 1, 1, 0}, {1, 0, n / 2, n - 1 - n / 2}};
  all.push_back(std::vector<std::int64_t>(static_cast<std::size_t>(n), 1));
  return all;
}

/// The report with the samples in one piece; every other cut gives the same value: the same bits for `exact`
/// metrics, else within 1e-12 of it.
inline MetricReport report_of(const std::string& yaml, const Samples& samples, bool exact = true) {
  const std::unique_ptr<Metric> metric = metric_from(yaml, samples.input);
  const MetricReport whole = report_of(*metric, samples, {samples.n});
  const auto expect_same = [&](double a, double b) {
    if (std::isnan(b))
      EXPECT_TRUE(std::isnan(a)) << yaml;
    else if (exact)
      EXPECT_EQ(a, b) << yaml;
    else
      EXPECT_LE(std::abs(a - b), 1e-12 * std::max(1.0, std::abs(b))) << yaml;
  };
  for (const auto& sizes : cuts(samples.n)) {
    const MetricReport report = report_of(*metric, samples, sizes);
    EXPECT_EQ(report.value.has_value(), whole.value.has_value());
    if (whole.value) expect_same(*report.value, *whole.value);
    EXPECT_EQ(report.tables.size(), whole.tables.size());
    for (std::size_t t = 0; t < whole.tables.size(); ++t)
      for (std::size_t i = 0; i < whole.tables[t].values.size(); ++i)
        expect_same(report.tables[t].values.at(i), whole.tables[t].values[i]);
  }
  return whole;
}

inline double value_of(const std::string& yaml, const Samples& samples, bool exact = true) {
  const MetricReport report = report_of(yaml, samples, exact);
  EXPECT_TRUE(report.value.has_value()) << yaml;
  return report.value.value_or(-1e300);
}

inline std::vector<double> table_of(const std::string& yaml, const Samples& samples, std::string_view name,
                                    bool exact = true) {
  for (const MetricTable& table : report_of(yaml, samples, exact).tables)
    if (table.name == name) return table.values;
  ADD_FAILURE() << yaml << " reports no table " << name;
  return {};
}

/// NaN fails.
inline void expect_near(double actual, double expected, const std::string& what, double tolerance = 1e-12) {
  EXPECT_TRUE(std::abs(actual - expected) <= tolerance * std::max(1.0, std::abs(expected)))
      << what << ": " << actual << " is not " << expected;
}

/// The message of the Error(config) that making the metric throws.
inline std::string refusal(const std::string& yaml, const MetricInput& input) {
  try {
    metric_from(yaml, input);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::config) << error.what();
    EXPECT_NE(error.where().find("test"), std::string::npos) << "no position: " << error.what();
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace lockstep
