// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// mean and percentage_below, which need no labels, of a head's predictions or of a layer's outputs; and
// perplexity, the exponential of the mean cross-entropy over all positions, computed from the outputs in
// double.
#include <cmath>

#include "config/option.h"
#include "model/metric.h"
#include "model/metric_cases.h"

namespace lockstep {

namespace {

struct Options {
  std::optional<std::string> layer;
  bool per_output = false;
  std::optional<double> threshold;
};
constexpr ParamSpec kLayerOption =
    option<&Options::layer>("layer", "null", in_words("layer or layer:1"),
                            "Read the outputs of this layer; null: the head's predictions.");
constexpr ParamSpec kMeanTable[] = {
    kLayerOption,
    option<&Options::per_output>("per_output", "false", {},
                                 "Also report the mean of each output (of the last axis)."),
};
constexpr ParamSpec kBelowTable[] = {
    kLayerOption,
    option<&Options::threshold>("threshold", kRequired, between(-1e30, 1e30), "Numbers below it count."),
};

/// State per column: the sum of the numbers (or the number of those below the threshold), count.
class Mean final : public Metric {
 public:
  Mean(const Options& options, const MetricInput& input)
      : elements_(input.output.num_elements()),
        columns_(options.per_output ? input.output.last() : 1),
        per_output_(options.per_output),
        threshold_(options.threshold),
        layer_(options.layer.value_or("")) {}
  bool needs_predictions() const override { return layer_.empty(); }
  bool needs_outputs() const override { return !layer_.empty(); }
  std::string layer() const override { return layer_; }
  std::int64_t width() const override { return 2 * columns_; }
  void add(const MetricBatch& batch, double* state) const override {
    const float* numbers = layer_.empty() ? batch.predictions : batch.outputs;
    for (std::int64_t i = 0; i < batch.n * elements_; ++i) {
      double* own = state + 2 * (i % columns_);
      const auto number = static_cast<double>(numbers[i]);
      own[0] += threshold_ ? (number < *threshold_ ? 1 : 0) : number;
      own[1] += 1;
    }
  }
  MetricReport report(const double* totals, std::span<ScoreRecord>) const override {
    double sum = 0, count = 0;
    std::vector<double> values;
    for (std::int64_t c = 0; c < columns_; ++c) {
      sum += totals[2 * c];
      count += totals[2 * c + 1];
      values.push_back(ratio(totals[2 * c], totals[2 * c + 1]));
    }
    MetricReport report{ratio(sum, count), {}};
    if (per_output_) report.tables.push_back({"per_output", 0, std::move(values)});
    return report;
  }

 private:
  std::int64_t elements_, columns_;
  bool per_output_;
  std::optional<double> threshold_;
  std::string layer_;
};

/// State: sum of -log p(label), count.
class Perplexity final : public Metric {
 public:
  Perplexity(const Params& params, const MetricInput& input)
      : cases_(params, input), probabilities_(params.string("predictions") == "classes") {}
  bool needs_predictions() const override { return false; }
  unsigned class_parts() const override { return probabilities_ ? kLabelOutput : kLabelCrossEntropy; }
  std::int64_t width() const override { return 2; }
  void add(const MetricBatch& batch, double* state) const override {
    cases_.for_each(batch, [&](std::int64_t sample, const ClassScore& score, std::int64_t) {
      const double weight = batch.weight(sample);
      state[0] +=
          weight * (probabilities_ ? -std::log(static_cast<double>(score.of_label)) : score.cross_entropy);
      state[1] += weight;
    });
  }
  MetricReport report(const double* totals, std::span<ScoreRecord>) const override {
    return {std::exp(ratio(totals[0], totals[1])), {}};
  }

 private:
  ClassCases cases_;
  bool probabilities_;  ///< the outputs are probabilities
};

std::unique_ptr<Metric> make_mean(const Params& params, const MetricInput& input) {
  return std::make_unique<Mean>(params.as<Options>(), input);
}

}  // namespace

extern const MetricEntry kMeanMetric = {"mean", "mean of the predictions, or of a layer's outputs",
                                        kMeanTable, false, make_mean};
extern const MetricEntry kPercentageBelowMetric = {
    "percentage_below", "fraction of the predictions, or of a layer's outputs, below a threshold",
    kBelowTable, false, make_mean};
extern const MetricEntry kPerplexityMetric = {
    "perplexity",
    "exponential of the mean cross-entropy over all positions",
    {},
    true,
    [](const Params& params, const MetricInput& input) -> std::unique_ptr<Metric> {
      return std::make_unique<Perplexity>(params, input);
    },
    Direction::min};

}  // namespace lockstep
