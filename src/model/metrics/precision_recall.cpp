// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// precision = tp / (tp + fp), recall = tp / (tp + fn), f1 = 2 tp / (2 tp + fp + fn); 0 instead of 0 / 0.
// State per class or label: tp, fp, fn. With thresholds: best_f1 the state is that of ScoreCurves, and each
// label's threshold is chosen at the end: the largest one with the highest F1 on the evaluation set.
#include <cmath>
#include <limits>
#include <string>

#include "config/option.h"
#include "model/metric.h"
#include "model/metrics/score_curves.h"
#include "model/metrics/thresholds.h"

namespace lockstep {

namespace {

struct Options {
  std::string average;
  Node thresholds;
  CurveOptions curves;
};
constexpr ParamSpec kTable[] = {
    option<&Options::average>("average", "auto", one_of("auto|binary|micro|macro|per_class"),
                              "binary: one label, or class 1 of two. micro: from the counts of all classes "
                              "together. macro: mean over all classes. per_class: as macro, with each "
                              "class's value. auto: binary if possible, else macro."),
    option<&Options::thresholds>(
        "thresholds", "0.5", in_words("number, numbers or best_f1"),
        "A label, or class 1 of two, is predicted if its probability is above this: one number, or one per "
        "label. best_f1: per label, the threshold with the highest F1 on the evaluation set; thresholds and "
        "F1 are reported. With several classes the largest output is the prediction."),
    num_thresholds_option<&Options::curves>(),
    exact_option<&Options::curves>(),
    memory_option<&Options::curves>(),
};

struct Counts {
  double tp = 0, fp = 0, fn = 0;
};

enum class Kind { precision, recall, f1 };

double value_of(Kind kind, const Counts& counts) {
  switch (kind) {
    case Kind::precision:
      return ratio(counts.tp, counts.tp + counts.fp);
    case Kind::recall:
      return ratio(counts.tp, counts.tp + counts.fn);
    default:
      return ratio(2 * counts.tp, 2 * counts.tp + counts.fp + counts.fn);
  }
}

struct Thresholds {
  std::vector<double> numbers;
};

std::vector<double> numbers_of(const Params& params, const Node& node) {
  Node map;
  map.kind = Node::Kind::map;
  map.where = node.where;
  map.entries.emplace_back("thresholds", node);
  map.entry_where.push_back(node.where);
  static constexpr ParamSpec kNumbers[] = {
      option<&Thresholds::numbers>("thresholds", "0.5", between(-1e30, 1e30), "numbers, or best_f1")};
  return Params(map, kNumbers, params.subject()).as<Thresholds>().numbers;
}

/// The threshold of a point as a number that the option `thresholds` takes, and with which the same scores
/// are above it. There it is a float32, which may be one of the scores where these are close to each other.
double as_option(const CurvePoint& point, bool exact) {
  const auto lowest = static_cast<float>(point.lowest);
  if (exact && std::isinf(lowest)) return 1;  // no score is above it
  auto threshold = static_cast<float>(point.threshold);
  if (exact && threshold >= lowest)
    threshold = std::nextafter(lowest, -std::numeric_limits<float>::infinity());
  return std::stod(fmt::format("{}", threshold));  // the digits that a float32 needs
}

class PrecisionRecall final : public Metric {
 public:
  PrecisionRecall(Kind kind, const Options& options, const Params& params, const MetricInput& input)
      : kind_(kind), average_(options.average) {
    const bool classes = input.predictions == PredictionKind::classes;
    const std::int64_t width = input.output.last();
    if (average_ == "binary" && width != (classes ? 2 : 1))
      throw params.error(option_name<&Options::average>(params),
                         fmt::format("binary, but there are {} of them", width),
                         "Take micro, macro or per_class.");
    if (average_ == "auto") average_ = width == (classes ? 2 : 1) ? "binary" : "macro";
    const Node& thresholds = options.thresholds;
    const std::string_view thresholds_name = option_name<&Options::thresholds>(params);
    const bool best = thresholds.kind == Node::Kind::scalar && thresholds.text == "best_f1";
    if (classes && average_ != "binary") {
      if (params.given(thresholds_name))
        throw params.error(thresholds_name, "act on labels, but the outputs are classes: the largest counts",
                           "Leave them out.");
      classes_.emplace(params, input);
      columns_ = width;
    } else if (best) {
      curves_.emplace(options.curves, params, input, average_ == "binary");
      columns_ = curves_->columns();
    } else {
      labels_.emplace(params, input, average_ == "binary");
      columns_ = labels_->columns();
      thresholds_ = thresholds_of(params, thresholds_name, numbers_of(params, thresholds), columns_);
    }
    for (const std::string_view option : {"num_thresholds", "exact", "memory_mb"})
      if (!best && params.given(option))
        throw params.error(option, "is for thresholds: best_f1 only", "Leave it out.");
  }

  std::int64_t width() const override { return curves_ ? curves_->width() : 3 * columns_; }
  std::int64_t records_per_sample() const override { return curves_ ? curves_->records_per_sample() : 0; }
  bool needs_predictions() const override { return !classes_; }
  unsigned class_parts() const override { return classes_ ? kLargestClass : 0U; }
  void record(const MetricBatch& batch, ScoreRecord* records) const override {
    curves_->record(batch, records);
  }

  void add(const MetricBatch& batch, double* state) const override {
    if (curves_) return curves_->add(batch, state);
    if (classes_) {
      classes_->for_each(batch, [&](std::int64_t sample, const ClassScore& score, std::int64_t label) {
        const double weight = batch.weight(sample);
        const std::int64_t predicted = score.largest;
        if (predicted == label) {
          state[3 * label] += weight;
        } else {
          if (predicted >= 0) state[3 * predicted + 1] += weight;
          state[3 * label + 2] += weight;
        }
      });
      return;
    }
    labels_->for_each(
        batch, batch.predictions,
        [&](std::int64_t sample, std::int64_t, std::int64_t column, float score, bool truth) {
          const bool predicted = score > thresholds_[static_cast<std::size_t>(column)];
          if (predicted || truth)
            state[3 * column + (predicted && truth ? 0 : predicted ? 1 : 2)] += batch.weight(sample);
        });
  }

  MetricReport report(const double* totals, std::span<ScoreRecord> records) const override {
    std::vector<Counts> counts;
    MetricTable thresholds{"thresholds", 0, {}}, best{"best_f1", 0, {}};
    if (curves_) {
      if (!curves_->valid(totals)) return {std::numeric_limits<double>::quiet_NaN(), {}};
      for (std::int64_t c = 0; c < columns_; ++c) {
        const auto [threshold, count] = best_of(curves_->of_column(c, totals, records));
        counts.push_back(count);
        thresholds.values.push_back(threshold);
        best.values.push_back(value_of(Kind::f1, count));
      }
    } else {
      for (std::int64_t c = 0; c < columns_; ++c)
        counts.push_back({totals[3 * c], totals[3 * c + 1], totals[3 * c + 2]});
    }
    MetricReport report = averaged(counts);
    if (curves_) {
      report.tables.push_back(std::move(thresholds));
      report.tables.push_back(std::move(best));
    }
    return report;
  }

 private:
  MetricReport averaged(const std::vector<Counts>& counts) const {
    if (average_ == "micro" || average_ == "binary") {
      Counts all;
      for (const Counts& count : counts) {
        all.tp += count.tp;
        all.fp += count.fp;
        all.fn += count.fn;
      }
      return {value_of(kind_, all), {}};
    }
    std::vector<double> values;
    double sum = 0;
    for (const Counts& count : counts) {
      values.push_back(value_of(kind_, count));
      sum += values.back();
    }
    MetricReport report{sum / static_cast<double>(values.size()), {}};
    if (average_ == "per_class") report.tables.push_back({"per_class", 0, std::move(values)});
    return report;
  }

  /// The largest threshold with the highest F1.
  static std::pair<double, Counts> best_of(const Curve& curve) {
    std::pair<double, Counts> best{};
    double best_f1 = -1;
    for (const CurvePoint& point : curve.points) {
      const Counts counts{point.tp, point.fp, curve.positives - point.tp};
      if (const double f1 = value_of(Kind::f1, counts); f1 > best_f1) {
        best_f1 = f1;
        best = {as_option(point, curve.exact), counts};
      }
    }
    return best;
  }

  Kind kind_;
  std::string average_;
  std::int64_t columns_ = 0;
  std::optional<ClassCases> classes_;
  std::optional<LabelCases> labels_;
  std::optional<ScoreCurves> curves_;
  std::vector<float> thresholds_;
};

template <Kind kKind>
std::unique_ptr<Metric> make(const Params& params, const MetricInput& input) {
  return std::make_unique<PrecisionRecall>(kKind, params.as<Options>(), params, input);
}

}  // namespace

extern const MetricEntry kPrecisionMetric = {
    "precision",   "fraction of the predictions that are correct", kTable, true, make<Kind::precision>,
    Direction::max};
extern const MetricEntry kRecallMetric = {
    "recall",      "fraction of the positives that are predicted", kTable, true, make<Kind::recall>,
    Direction::max};
extern const MetricEntry kF1Metric = {
    "f1", "harmonic mean of precision and recall", kTable, true, make<Kind::f1>, Direction::max};

}  // namespace lockstep
