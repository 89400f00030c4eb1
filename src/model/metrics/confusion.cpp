// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Metrics of the confusion matrix C (rows: the label's class; columns: the predicted one):
//   confusion_matrix         C
//   mean_iou                 mean over classes that occur of C_cc / (row_c + column_c - C_cc)
//   mean_per_class_accuracy  mean over classes of C_cc / row_c
// A single label (sigmoid) counts as two classes, absent and present.
#include "config/option.h"
#include "model/metric.h"
#include "model/metric_cases.h"
#include "model/metrics/thresholds.h"

namespace lockstep {

namespace {

struct Options {
  double threshold = 0;
  bool per_class = false;
};
constexpr ParamSpec kThresholdOption =
    option<&Options::threshold>("threshold", "0.5", between(-1e30, 1e30),
                                "For a single label: it is predicted if its probability is above this.");
constexpr ParamSpec kMatrixTable[] = {kThresholdOption};
constexpr ParamSpec kMeanTable[] = {
    kThresholdOption,
    option<&Options::per_class>("per_class", "false", {}, "Also report each class's value."),
};

/// Pairs of the label's class and the predicted class.
class Pairs {
 public:
  Pairs(const Params& params, const MetricInput& input) : threshold_(params.as<Options>().threshold) {
    if (input.predictions == PredictionKind::labels) {
      labels_.emplace(params, input, false);
      if (labels_->columns() != 1)
        refuse_metric(params, fmt::format("needs classes, but there are {} labels", labels_->columns()),
                      "For labels take f1, precision or recall with average: per_class.");
      return;
    }
    classes_.emplace(params, input);
    const std::string_view threshold = option_name<&Options::threshold>(params);
    if (params.given(threshold))
      throw params.error(threshold, "acts on a label, but the outputs are classes: the largest counts",
                         "Leave it out.");
  }
  std::int64_t classes() const { return classes_ ? classes_->classes() : 2; }
  bool needs_predictions() const { return labels_.has_value(); }
  unsigned class_parts() const { return classes_ ? kLargestClass : 0U; }
  /// Calls f(class, predicted class, weight). The predicted class is -1 if all outputs are NaN.
  template <typename F>
  void for_each(const MetricBatch& batch, F&& f) const {
    if (classes_)
      classes_->for_each(batch, [&](std::int64_t sample, const ClassScore& score, std::int64_t label) {
        f(label, static_cast<std::int64_t>(score.largest), batch.weight(sample));
      });
    else
      labels_->for_each(batch, batch.predictions,
                        [&](std::int64_t sample, std::int64_t, std::int64_t, float score, bool truth) {
                          f(truth ? 1 : 0,
                            score == score ? (score > static_cast<float>(threshold_) ? 1 : 0) : -1,
                            batch.weight(sample));
                        });
  }

 private:
  std::optional<ClassCases> classes_;
  std::optional<LabelCases> labels_;
  double threshold_;
};

class ConfusionMatrix final : public Metric {
 public:
  ConfusionMatrix(const Params& params, const MetricInput& input) : pairs_(params, input) {}
  bool needs_predictions() const override { return pairs_.needs_predictions(); }
  unsigned class_parts() const override { return pairs_.class_parts(); }
  bool has_value() const override { return false; }
  std::int64_t width() const override { return pairs_.classes() * pairs_.classes(); }
  void add(const MetricBatch& batch, double* state) const override {
    pairs_.for_each(batch, [&](std::int64_t label, std::int64_t predicted, double weight) {
      if (predicted >= 0) state[label * pairs_.classes() + predicted] += weight;
    });
  }
  MetricReport report(const double* totals, std::span<ScoreRecord>) const override {
    return {std::nullopt, {{"matrix", pairs_.classes(), std::vector<double>(totals, totals + width())}}};
  }

 private:
  Pairs pairs_;
};

/// State per class: correct predictions, labels, predictions.
class ClassMean : public Metric {
 public:
  ClassMean(const Params& params, const MetricInput& input)
      : pairs_(params, input), per_class_(params.as<Options>().per_class) {}
  bool needs_predictions() const override { return pairs_.needs_predictions(); }
  unsigned class_parts() const override { return pairs_.class_parts(); }
  std::int64_t width() const override { return 3 * pairs_.classes(); }
  void add(const MetricBatch& batch, double* state) const override {
    pairs_.for_each(batch, [&](std::int64_t label, std::int64_t predicted, double weight) {
      state[3 * label + 1] += weight;
      if (predicted >= 0) state[3 * predicted + 2] += weight;
      if (predicted == label) state[3 * label] += weight;
    });
  }
  MetricReport report(const double* totals, std::span<ScoreRecord>) const override {
    std::vector<double> values;
    double sum = 0;
    std::int64_t counted = 0;
    for (std::int64_t c = 0; c < pairs_.classes(); ++c) {
      const double *state = totals + 3 * c, whole = divisor(state[0], state[1], state[2]);
      values.push_back(ratio(state[0], whole));
      sum += values.back();
      counted += whole > 0 || counts_absent() ? 1 : 0;
    }
    MetricReport report{ratio(sum, static_cast<double>(counted)), {}};
    if (per_class_) report.tables.push_back({"per_class", 0, std::move(values)});
    return report;
  }

 protected:
  virtual double divisor(double right, double labels, double predictions) const = 0;
  /// Whether a class that does not occur counts as 0.
  virtual bool counts_absent() const = 0;

 private:
  Pairs pairs_;
  bool per_class_;
};

class MeanIou final : public ClassMean {
 public:
  using ClassMean::ClassMean;

 private:
  double divisor(double right, double labels, double predictions) const override {
    return labels + predictions - right;
  }
  bool counts_absent() const override { return false; }
};

class MeanPerClassAccuracy final : public ClassMean {
 public:
  using ClassMean::ClassMean;

 private:
  double divisor(double, double labels, double) const override { return labels; }
  bool counts_absent() const override { return true; }
};

template <typename T>
std::unique_ptr<Metric> make(const Params& params, const MetricInput& input) {
  return std::make_unique<T>(params, input);
}

}  // namespace

extern const MetricEntry kConfusionMatrixMetric = {
    "confusion_matrix", "how often each class (rows) is predicted as each class (columns)", kMatrixTable,
    true, make<ConfusionMatrix>};
extern const MetricEntry kMeanIouMetric = {
    "mean_iou",    "mean over classes of intersection over union; classes that do not occur do not count",
    kMeanTable,    true,
    make<MeanIou>, Direction::max};
extern const MetricEntry kMeanPerClassAccuracyMetric = {
    "mean_per_class_accuracy",
    "mean over classes of the fraction that is correct; 0 for classes without labels",
    kMeanTable,
    true,
    make<MeanPerClassAccuracy>,
    Direction::max};

}  // namespace lockstep
