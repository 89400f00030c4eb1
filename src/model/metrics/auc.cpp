// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Areas under the ROC curve (recall over false positive rate) and the precision-recall curve.
//
// With thresholds, the formulas are those of tf.metrics.auc, with epsilon 1e-6 in each ratio. The exact
// method has no epsilon: the area under the ROC curve is the probability that a positive has a higher score
// than a negative, where ties count half (Mann and Whitney 1947), computed from whole numbers.
// careful_interpolation is that of Davis and Goadrich (ICML 2006); average_precision is the sum of (R_i -
// R_(i-1)) P_i.
#include <cmath>
#include <limits>

#include "config/option.h"
#include "model/metric.h"
#include "model/metrics/score_curves.h"

namespace lockstep {

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

struct Options {
  std::string average, summation;
  CurveOptions curves;
  bool curve = false;
};
constexpr ParamSpec kAverage = option<&Options::average>(
    "average", "auto", one_of("auto|binary|micro|macro|per_class"),
    "binary: one label, or class 1 of two. macro: mean over the labels or classes that have positives and "
    "negatives. micro: all of them pooled. per_class: as macro, with each one's value. auto: binary if "
    "possible, else macro.");
constexpr ParamSpec kCurve = option<&Options::curve>("curve", "false", {},
                                                     "Also report the curve: counts at the thresholds (at "
                                                     "most 1001; 101 if exact). TensorBoard shows it under "
                                                     "PR curves.",
                                                     Change::free);
constexpr ParamSpec kRocTable[] = {
    kAverage,
    option<&Options::summation>(
        "summation", "trapezoidal", one_of("trapezoidal|minoring|majoring"),
        "The curve between two points: a line, or constant at the lower or the higher one."),
    num_thresholds_option<&Options::curves>(),
    exact_option<&Options::curves>(),
    memory_option<&Options::curves>(),
    kCurve,
};
constexpr ParamSpec kPrTable[] = {
    kAverage,
    option<&Options::summation>(
        "summation", "auto",
        one_of("auto|trapezoidal|minoring|majoring|careful_interpolation|average_precision"),
        "As for auc_roc; careful_interpolation: along the curve that mixtures of the two points give; "
        "average_precision: steps. auto: average_precision if exact, else trapezoidal."),
    num_thresholds_option<&Options::curves>(),
    exact_option<&Options::curves>(),
    memory_option<&Options::curves>(),
    kCurve,
};

struct Line {
  double x0, y0, x1, y1;  ///< x0 <= x1
};

double piece(const Line& line, const std::string& summation) {
  const double width = line.x1 - line.x0;
  if (summation == "minoring") return width * std::min(line.y0, line.y1);
  if (summation == "majoring") return width * std::max(line.y0, line.y1);
  if (summation == "average_precision") return width * line.y1;
  return width * (line.y0 + line.y1) / 2;
}

double roc_area(const Curve& curve, const std::string& summation, bool exact) {
  const double epsilon = exact ? 0 : 1e-6;
  // Whole numbers as long as possible, so that the sums of ranks are exact.
  if (exact) {
    double area = 0;
    for (std::size_t i = 1; i < curve.points.size(); ++i) {
      const CurvePoint &a = curve.points[i - 1], &b = curve.points[i];
      area += 2 * piece({a.fp, a.tp, b.fp, b.tp}, summation);
    }
    return area / (2 * curve.positives * curve.negatives);
  }
  double area = 0;
  const auto x = [&](const CurvePoint& p) { return p.fp / (curve.negatives + epsilon); };
  const auto y = [&](const CurvePoint& p) { return (p.tp + epsilon) / (curve.positives + epsilon); };
  for (std::size_t i = curve.points.size(); i-- > 1;)
    area += piece({x(curve.points[i - 1]), y(curve.points[i - 1]), x(curve.points[i]), y(curve.points[i])},
                  summation);
  return area;
}

double careful_area(const Curve& curve) {
  double area = 0;
  for (std::size_t i = curve.points.size(); i-- > 1;) {
    const CurvePoint &more = curve.points[i], &fewer = curve.points[i - 1];
    const double p_more = more.tp + more.fp, p_fewer = fewer.tp + fewer.fp;
    const double d_tp = more.tp - fewer.tp;
    const double slope = ratio(d_tp, p_more - p_fewer);
    const double intercept = fewer.tp - slope * p_fewer;
    const double relation = p_more > 0 && p_fewer > 0 ? p_more / p_fewer : 1;
    area += ratio(slope * (d_tp + intercept * std::log(relation)), curve.positives);
  }
  return area;
}

double pr_area(const Curve& curve, const std::string& summation, bool exact) {
  if (summation == "careful_interpolation") return careful_area(curve);
  const double epsilon = exact ? 0 : 1e-6;
  const auto x = [&](const CurvePoint& p) { return (p.tp + epsilon) / (curve.positives + epsilon); };
  const auto y = [&](const CurvePoint& p) {
    return p.tp + p.fp == 0 ? 1 : (p.tp + epsilon) / (p.tp + p.fp + epsilon);
  };
  double area = 0;
  for (std::size_t i = curve.points.size(); i-- > 1;)
    area += piece({x(curve.points[i - 1]), y(curve.points[i - 1]), x(curve.points[i]), y(curve.points[i])},
                  summation);
  return area;
}

bool single(const std::string& average, const MetricInput& input) {
  return average == "binary" ||
         (average == "auto" && input.predictions == PredictionKind::classes && input.output.last() == 2);
}

template <bool kRoc>
class Auc final : public Metric {
 public:
  Auc(const Options& options, const Params& params, const MetricInput& input)
      : curves_(options.curves, params, input, single(options.average, input)),
        curve_(options.curve),
        average_(options.average),
        summation_(options.summation) {
    const bool classes = input.predictions == PredictionKind::classes;
    if (average_ == "binary" && (classes ? input.output.last() != 2 : curves_.columns() != 1))
      throw params.error(option_name<&Options::average>(params),
                         fmt::format("binary, but there are {} of them", input.output.last()),
                         "Take micro, macro or per_class.");
    if (average_ == "auto") average_ = curves_.columns() == 1 ? "binary" : "macro";
    if (summation_ == "auto") summation_ = curves_.exact() ? "average_precision" : "trapezoidal";
  }
  std::int64_t width() const override { return curves_.width(); }
  std::int64_t records_per_sample() const override { return curves_.records_per_sample(); }
  void add(const MetricBatch& batch, double* state) const override { curves_.add(batch, state); }
  void record(const MetricBatch& batch, ScoreRecord* records) const override {
    curves_.record(batch, records);
  }

  MetricReport report(const double* totals, std::span<ScoreRecord> records) const override {
    const bool valid = curves_.valid(totals);
    if (average_ == "binary" || average_ == "micro") {
      if (!valid) return {kNaN, {}};
      const Curve curve = curves_.of_all(totals, records);
      MetricReport report{curves_.exact() && !defined(curve) ? kNaN : area(curve), {}};
      std::vector<double> table;
      if (curve_) append_curve(curve, 0, curves_.table_points(), table);
      add_table(report, std::move(table));
      return report;
    }
    std::vector<double> values, table;
    double sum = 0;
    int count = 0;
    for (std::int64_t c = 0; c < curves_.columns(); ++c) {
      const Curve curve = valid ? curves_.of_column(c, totals, records) : Curve{};
      values.push_back(defined(curve) ? area(curve) : kNaN);
      if (curve_ && valid) append_curve(curve, c, curves_.table_points(), table);
      if (!defined(curve)) continue;
      sum += values.back();
      ++count;
    }
    MetricReport report{count > 0 ? sum / count : kNaN, {}};
    if (average_ == "per_class") report.tables.push_back({"per_class", 0, std::move(values)});
    add_table(report, std::move(table));
    return report;
  }

 private:
  static void add_table(MetricReport& report, std::vector<double> table) {
    if (!table.empty()) report.tables.push_back({kCurveTable, kCurveTableColumns, std::move(table)});
  }
  static bool defined(const Curve& curve) { return curve.positives > 0 && (!kRoc || curve.negatives > 0); }
  double area(const Curve& curve) const {
    return kRoc ? roc_area(curve, summation_, curves_.exact()) : pr_area(curve, summation_, curves_.exact());
  }

  ScoreCurves curves_;
  bool curve_;
  std::string average_, summation_;
};

template <typename T>
std::unique_ptr<Metric> make(const Params& params, const MetricInput& input) {
  return std::make_unique<T>(params.as<Options>(), params, input);
}

}  // namespace

extern const MetricEntry kAucRocMetric = {
    "auc_roc", "area under the ROC curve", kRocTable, true, make<Auc<true>>, Direction::max};
extern const MetricEntry kAucPrMetric = {
    "auc_pr", "area under the precision-recall curve", kPrTable, true, make<Auc<false>>, Direction::max};

}  // namespace lockstep
