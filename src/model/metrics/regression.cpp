// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Distances between predicted numbers and labels, over all numbers or per output (the last axis). Sums are in
// double, in the order of the samples of a microshard. NaN gives NaN.
#include <cmath>

#include "config/option.h"
#include "model/metric.h"
#include "model/metric_cases.h"

namespace lockstep {

namespace {

struct ErrorOptions {
  bool per_output = false;
};
constexpr ParamSpec kErrorTable[] = {option<&ErrorOptions::per_output>(
    "per_output", "false", {}, "Also report the value of each output (of the last axis).")};
struct CosineOptions {
  bool normalize = false;
};
constexpr ParamSpec kCosineTable[] = {option<&CosineOptions::normalize>(
    "normalize", "false", {},
    "Divide outputs and labels by their lengths; false: they have length 1 already.")};

double absolute(double prediction, double label) { return std::abs(prediction - label); }
double squared(double prediction, double label) { return (prediction - label) * (prediction - label); }
double relative(double prediction, double label) {
  return label == 0 ? 0 : std::abs(prediction - label) / std::abs(label);
}

/// State per column: sum, count.
template <double (*kError)(double, double), bool kRoot = false>
class MeanError final : public Metric {
 public:
  MeanError(const Params& params, const MetricInput& input)
      : cases_(params, input), per_output_(params.as<ErrorOptions>().per_output || input.names_outputs) {}
  bool reports_outputs() const override { return per_output_; }
  std::int64_t width() const override { return 2 * columns(); }
  void add(const MetricBatch& batch, double* state) const override {
    cases_.for_each(batch, [&](std::int64_t position, std::int64_t column, double prediction, double label) {
      const double weight = cases_.weight(batch, position);
      double* own = state + (per_output_ ? 2 * column : 0);
      own[0] += weight * kError(prediction, label);
      own[1] += weight;
    });
  }
  MetricReport report(const double* totals, std::span<ScoreRecord>) const override {
    MetricReport report;
    std::vector<double> values;
    double sum = 0, count = 0;
    for (std::int64_t c = 0; c < columns(); ++c) {
      sum += totals[2 * c];
      count += totals[2 * c + 1];
      values.push_back(value(totals[2 * c], totals[2 * c + 1]));
    }
    report.value = value(sum, count);
    if (per_output_) report.tables.push_back({"per_output", 0, std::move(values)});
    return report;
  }

 private:
  std::int64_t columns() const { return per_output_ ? cases_.columns() : 1; }
  static double value(double sum, double count) {
    return kRoot ? std::sqrt(ratio(sum, count)) : ratio(sum, count);
  }

  ValueCases cases_;
  bool per_output_;
};

/// 1 - sum (y - p)^2 / sum (y - mean y)^2 per output. Where the labels do not vary it is 1 if the predictions
/// are right, else 0. State per output: sum of weights, mean of the labels, their sum of squared deviations,
/// the sum of squared errors. The moments are merged by the formula of Chan, Golub and LeVeque, which takes
/// no differences of large sums.
class R2 final : public Metric {
 public:
  R2(const Params& params, const MetricInput& input)
      : cases_(params, input), per_output_(params.as<ErrorOptions>().per_output || input.names_outputs) {}
  bool reports_outputs() const override { return per_output_; }
  std::int64_t width() const override { return 4 * cases_.columns(); }
  void add(const MetricBatch& batch, double* state) const override {
    cases_.for_each(batch, [&](std::int64_t position, std::int64_t column, double prediction, double label) {
      const double weight = cases_.weight(batch, position);
      const double one[4] = {weight, label, 0, weight * squared(prediction, label)};
      combine(state + 4 * column, one);
    });
  }
  void merge(double* into, const double* right) const override {
    for (std::int64_t c = 0; c < cases_.columns(); ++c) combine(into + 4 * c, right + 4 * c);
  }
  MetricReport report(const double* totals, std::span<ScoreRecord>) const override {
    std::vector<double> values;
    double sum = 0;
    for (std::int64_t c = 0; c < cases_.columns(); ++c) {
      const double varied = totals[4 * c + 2], wrong = totals[4 * c + 3];
      values.push_back(varied == 0 ? (wrong == 0 ? 1 : 0) : 1 - wrong / varied);
      sum += values.back();
    }
    MetricReport report{sum / static_cast<double>(values.size()), {}};
    if (per_output_) report.tables.push_back({"per_output", 0, std::move(values)});
    return report;
  }

 private:
  static void combine(double* into, const double* right) {
    if (right[0] == 0) return;
    const double count = into[0] + right[0], delta = right[1] - into[1], share = right[0] / count;
    into[2] += right[2] + delta * delta * into[0] * share;
    into[1] += delta * share;
    into[0] = count;
    into[3] += right[3];
  }

  ValueCases cases_;
  bool per_output_;
};

/// State: sum of 1 - p . y, count of positions. A position with an ignored label does not count.
class MeanCosineDistance final : public Metric {
 public:
  MeanCosineDistance(const Params& params, const MetricInput& input)
      : cases_(params, input), normalize_(params.as<CosineOptions>().normalize) {}
  std::int64_t width() const override { return 2; }
  void add(const MetricBatch& batch, double* state) const override {
    std::int64_t current = -1, seen = 0;
    double product = 0, predictions = 0, labels = 0;
    cases_.for_each(batch, [&](std::int64_t position, std::int64_t, double prediction, double label) {
      if (position != current) {
        current = position;
        seen = 0;
        product = predictions = labels = 0;
      }
      product += prediction * label;
      predictions += prediction * prediction;
      labels += label * label;
      if (++seen != cases_.columns()) return;
      const double length = std::sqrt(predictions) * std::sqrt(labels);
      const double weight = cases_.weight(batch, position);
      state[0] += weight * (1 - (normalize_ ? (length == 0 ? 0 : product / length) : product));
      state[1] += weight;
    });
  }
  MetricReport report(const double* totals, std::span<ScoreRecord>) const override {
    return {ratio(totals[0], totals[1]), {}};
  }

 private:
  ValueCases cases_;
  bool normalize_;
};

template <typename T>
std::unique_ptr<Metric> make(const Params& params, const MetricInput& input) {
  return std::make_unique<T>(params, input);
}

}  // namespace

extern const MetricEntry kMeanAbsoluteErrorMetric = {
    "mean_absolute_error", "mean of |p - y|", kErrorTable, true, make<MeanError<absolute>>, Direction::min};
extern const MetricEntry kMeanSquaredErrorMetric = {
    "mean_squared_error", "mean of (p - y)^2", kErrorTable, true, make<MeanError<squared>>, Direction::min};
extern const MetricEntry kRootMeanSquaredErrorMetric = {"root_mean_squared_error",
                                                        "square root of the mean of (p - y)^2",
                                                        kErrorTable,
                                                        true,
                                                        make<MeanError<squared, true>>,
                                                        Direction::min};
extern const MetricEntry kMeanRelativeErrorMetric = {"mean_relative_error",
                                                     "mean of |p - y| / |y|, which is 0 where y is 0",
                                                     kErrorTable,
                                                     true,
                                                     make<MeanError<relative>>,
                                                     Direction::min};
extern const MetricEntry kR2Metric = {
    "r2",        "fraction of the labels' variance that is explained; mean over outputs",
    kErrorTable, true,
    make<R2>,    Direction::max};
extern const MetricEntry kMeanCosineDistanceMetric = {"mean_cosine_distance",
                                                      "mean over positions of 1 - the product of p and y",
                                                      kCosineTable,
                                                      true,
                                                      make<MeanCosineDistance>,
                                                      Direction::min};

}  // namespace lockstep
