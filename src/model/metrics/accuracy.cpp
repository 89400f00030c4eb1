// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Fractions of correct predictions: of positions or labels (accuracy, hamming_loss), of samples without an
// error (subset_accuracy), of positions whose class is among the k largest (top_k). State: the number of
// correct (or wrong) ones, and the number of all; a sample counts with its weight.
#include "config/option.h"
#include "model/metric.h"
#include "model/metric_cases.h"
#include "model/metrics/thresholds.h"

namespace lockstep {

namespace {

struct ThresholdOptions {
  std::vector<double> threshold;
};
constexpr ParamSpec kThresholdTable[] = {
    option<&ThresholdOptions::threshold>("threshold", "0.5", between(-1e30, 1e30), kThresholdHelp),
};
struct TopKOptions {
  std::int64_t k = 0;
};
constexpr ParamSpec kTopKTable[] = {
    option<&TopKOptions::k>("k", "5", between(1, 2147483647), "Number of largest outputs that count."),
};

/// Judges each position of classes, or each label.
class Judgement {
 public:
  Judgement(const Params& params, const MetricInput& input) {
    const std::string_view threshold = option_name<&ThresholdOptions::threshold>(params);
    if (input.predictions == PredictionKind::classes) {
      classes_.emplace(params, input);
      if (params.given(threshold))
        throw params.error(threshold, "acts on labels, but the outputs are classes: the largest counts",
                           "Leave it out.");
      return;
    }
    labels_.emplace(params, input, false);
    thresholds_ =
        thresholds_of(params, threshold, params.as<ThresholdOptions>().threshold, labels_->columns());
  }

  bool needs_predictions() const { return labels_.has_value(); }
  unsigned class_parts() const { return classes_ ? kLargestClass : 0U; }
  /// Calls f(sample, right).
  template <typename F>
  void for_each(const MetricBatch& batch, F&& f) const {
    if (classes_)
      classes_->for_each(batch, [&](std::int64_t sample, const ClassScore& score, std::int64_t label) {
        f(sample, score.largest == label);
      });
    else
      labels_->for_each(batch, batch.predictions,
                        [&](std::int64_t sample, std::int64_t, std::int64_t column, float score, bool truth) {
                          f(sample, (score > thresholds_[static_cast<std::size_t>(column)]) == truth);
                        });
  }

 private:
  std::optional<ClassCases> classes_;
  std::optional<LabelCases> labels_;
  std::vector<float> thresholds_;
};

class ShareMetric : public Metric {
 public:
  std::int64_t width() const override { return 2; }
  MetricReport report(const double* totals, std::span<ScoreRecord>) const override {
    return {ratio(totals[0], totals[1]), {}};
  }
};

/// `kWrong`: counts errors.
template <bool kWrong>
class Accuracy final : public ShareMetric {
 public:
  Accuracy(const Params& params, const MetricInput& input) : judgement_(params, input) {}
  bool needs_predictions() const override { return judgement_.needs_predictions(); }
  unsigned class_parts() const override { return judgement_.class_parts(); }
  void add(const MetricBatch& batch, double* state) const override {
    judgement_.for_each(batch, [&](std::int64_t sample, bool right) {
      const double weight = batch.weight(sample);
      if (right != kWrong) state[0] += weight;
      state[1] += weight;
    });
  }

 private:
  Judgement judgement_;
};

class SubsetAccuracy final : public ShareMetric {
 public:
  SubsetAccuracy(const Params& params, const MetricInput& input) : judgement_(params, input) {}
  bool needs_predictions() const override { return judgement_.needs_predictions(); }
  unsigned class_parts() const override { return judgement_.class_parts(); }
  void add(const MetricBatch& batch, double* state) const override {
    std::int64_t current = -1;
    double samples = 0, wrong_samples = 0;
    bool wrong = false;
    judgement_.for_each(batch, [&](std::int64_t sample, bool right) {
      if (sample != current) {
        current = sample;
        wrong = false;
        samples += batch.weight(sample);
      }
      if (!right && !wrong) {
        wrong = true;
        wrong_samples += batch.weight(sample);
      }
    });
    state[0] += samples - wrong_samples;
    state[1] += samples;
  }

 private:
  Judgement judgement_;
};

/// A position is correct if fewer than k outputs are larger than the label's, so ties count as correct. It is
/// wrong if an output is not finite. This is TensorFlow's in_top_k.
class TopK final : public ShareMetric {
 public:
  TopK(const Params& params, const MetricInput& input)
      : cases_(params, input), k_(params.as<TopKOptions>().k) {
    if (k_ > cases_.classes())
      throw params.error(option_name<&TopKOptions::k>(params),
                         fmt::format("{} of {} classes", k_, cases_.classes()), "Take a smaller k.");
  }
  bool needs_predictions() const override { return false; }
  unsigned class_parts() const override { return kLabelRank; }
  void add(const MetricBatch& batch, double* state) const override {
    cases_.for_each(batch, [&](std::int64_t sample, const ClassScore& score, std::int64_t) {
      const double weight = batch.weight(sample);
      if (score.larger >= 0 && score.larger < k_) state[0] += weight;
      state[1] += weight;
    });
  }

 private:
  ClassCases cases_;
  std::int64_t k_;
};

template <typename T>
std::unique_ptr<Metric> make(const Params& params, const MetricInput& input) {
  return std::make_unique<T>(params, input);
}

}  // namespace

extern const MetricEntry kAccuracyMetric = {"accuracy",
                                            "fraction of positions whose largest output is the class; with "
                                            "labels, fraction of single labels that are correct",
                                            kThresholdTable,
                                            true,
                                            make<Accuracy<false>>,
                                            Direction::max};
extern const MetricEntry kHammingLossMetric = {
    "hamming_loss",       "fraction of single labels (or classes) that are wrong",
    kThresholdTable,      true,
    make<Accuracy<true>>, Direction::min};
extern const MetricEntry kSubsetAccuracyMetric = {
    "subset_accuracy",    "fraction of samples whose labels (or positions) are all correct",
    kThresholdTable,      true,
    make<SubsetAccuracy>, Direction::max};
extern const MetricEntry kTopKMetric = {
    "top_k",    "fraction of positions whose class is among the k largest outputs; ties count as correct",
    kTopKTable, true,
    make<TopK>, Direction::max};

}  // namespace lockstep
