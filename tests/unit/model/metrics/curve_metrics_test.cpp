// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Areas under curves and best thresholds are compared with their definitions over all pairs and all
// thresholds.
#include <algorithm>
#include <limits>

#include "metric_testing.h"
#include "model/metrics/score_curves.h"

namespace lockstep {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

struct Score {
  float score;
  bool truth;
};
using Scores = std::vector<Score>;

/// Of one label, or of class c against the others.
Scores scores_of(const Samples& samples, std::int64_t c) {
  Scores scores;
  const std::int64_t width = samples.input.output.last();
  for (std::size_t i = static_cast<std::size_t>(c); i < samples.predictions.size();
       i += static_cast<std::size_t>(width)) {
    const bool truth = samples.indices.empty() ? samples.rows[i] == 1
                                               : samples.indices[i / static_cast<std::size_t>(width)] == c;
    scores.push_back({samples.predictions[i], truth});
  }
  return scores;
}

double positives(const Scores& scores) {
  return static_cast<double>(
      std::count_if(scores.begin(), scores.end(), [](const Score& s) { return s.truth; }));
}

/// Probability that a positive is above a negative; ties count half.
double rank_statistic(const Scores& scores) {
  double won = 0;
  for (const Score& a : scores)
    for (const Score& b : scores)
      if (a.truth && !b.truth) won += a.score > b.score ? 1 : a.score == b.score ? 0.5 : 0;
  const double all = positives(scores);
  return won / (all * (static_cast<double>(scores.size()) - all));
}

struct Counts {
  double tp = 0, fp = 0, fn = 0, tn = 0;
};
Counts counts_above(const Scores& scores, double threshold) {
  Counts c;
  for (const Score& s : scores) {
    const bool predicted = static_cast<double>(s.score) > threshold;
    (s.truth ? (predicted ? c.tp : c.fn) : (predicted ? c.fp : c.tn)) += 1;
  }
  return c;
}

/// sum (R_i - R_(i-1)) P_i over the scores that occur, from the highest.
double average_precision(const Scores& scores) {
  std::vector<float> values;
  for (const Score& s : scores) values.push_back(s.score);
  std::sort(values.rbegin(), values.rend());
  double before = 0, sum = 0;
  for (const float value : values) {
    const Counts c = counts_above(scores, std::nextafter(static_cast<double>(value), -1.0));
    const double recall = c.tp / (c.tp + c.fn);
    sum += (recall - before) * c.tp / (c.tp + c.fp);
    before = recall;
  }
  return sum;
}

/// The formulas of the reference, at float32 thresholds.
double threshold_area(const Scores& scores, int n, bool roc, const std::string& summation) {
  std::vector<double> x, y, tp, p;
  double all = 0;
  for (int i = 0; i < n; ++i) {
    const double t = i == 0 ? -1e-7 : i == n - 1 ? 1 + 1e-7 : static_cast<double>(i) / (n - 1);
    const Counts c = counts_above(scores, static_cast<double>(static_cast<float>(t)));
    const double e = 1e-6, recall = (c.tp + e) / (c.tp + c.fn + e);
    x.push_back(roc ? c.fp / (c.fp + c.tn + e) : recall);
    y.push_back(roc ? recall : (c.tp + e) / (c.tp + c.fp + e));
    tp.push_back(c.tp);
    p.push_back(c.tp + c.fp);
    all = c.tp + c.fn;
  }
  double area = 0;
  for (std::size_t i = 0; i + 1 < x.size(); ++i) {
    const double low = std::min(y[i], y[i + 1]), high = std::max(y[i], y[i + 1]);
    if (summation == "careful_interpolation") {
      const double d_tp = tp[i] - tp[i + 1], d_p = p[i] - p[i + 1];
      const double slope = d_p > 0 ? d_tp / d_p : 0, intercept = tp[i + 1] - slope * p[i + 1];
      const double relation = p[i] > 0 && p[i + 1] > 0 ? p[i] / p[i + 1] : 1;
      area += all > 0 ? slope * (d_tp + intercept * std::log(relation)) / all : 0;
    } else {
      area += (x[i] - x[i + 1]) * (summation == "minoring"   ? low
                                   : summation == "majoring" ? high
                                                             : (y[i] + y[i + 1]) / 2);
    }
  }
  return area;
}

TEST(Auc, ExactRocEqualsTheRankStatisticBitForBit) {
  for (const double step : {0.01, 0.5, 4.0})  // few ties, many, all
    for (const std::int64_t n : {3, 17, 60}) {
      const Samples samples = random_samples(n, Shape{1}, PredictionKind::labels, step);
      const double expected = rank_statistic(scores_of(samples, 0));
      const double value = value_of("{auc_roc: {exact: true}}", samples);
      if (std::isnan(expected))
        EXPECT_TRUE(std::isnan(value));
      else
        EXPECT_EQ(value, expected) << "step " << step << ", n " << n;
    }
}

TEST(Auc, TiedScoresGiveOneHalf) {
  Samples samples = random_samples(20, Shape{1}, PredictionKind::labels);
  samples.predictions.assign(20, 0.25F);
  EXPECT_EQ(value_of("{auc_roc: {exact: true}}", samples), 0.5);
  expect_near(value_of("auc_roc", samples), 0.5, "with thresholds", 1e-6);
  expect_near(value_of("{auc_pr: {exact: true}}", samples), positives(scores_of(samples, 0)) / 20,
              "precision");
}

TEST(Auc, ExactPrecisionRecallIsAveragePrecision) {
  for (const double step : {0.01, 0.5})
    for (const std::int64_t n : {17, 60}) {
      const Samples samples = random_samples(n, Shape{1}, PredictionKind::labels, step);
      expect_near(value_of("{auc_pr: {exact: true}}", samples), average_precision(scores_of(samples, 0)),
                  "exact");
    }
}

TEST(Auc, ThresholdsFollowTheReferenceFormulas) {
  for (const std::int64_t n : {1, 3, 17, 100})
    for (const int thresholds : {3, 50, 200}) {
      const Samples samples = random_samples(n, Shape{1}, PredictionKind::labels, 0.01);
      const Scores scores = scores_of(samples, 0);
      for (const std::string summation : {"trapezoidal", "minoring", "majoring", "careful_interpolation"})
        for (const bool roc : {true, false}) {
          if (roc && summation == "careful_interpolation") continue;
          const std::string yaml = fmt::format("{{{}: {{num_thresholds: {}, summation: {}}}}}",
                                               roc ? "auc_roc" : "auc_pr", thresholds, summation);
          expect_near(value_of(yaml, samples), threshold_area(scores, thresholds, roc, summation), yaml,
                      1e-11);
        }
    }
}

TEST(Auc, AScoreAtAThresholdIsNotAboveIt) {
  Samples samples = random_samples(200, Shape{1}, PredictionKind::labels);
  for (std::size_t i = 0; i < 200; ++i)
    samples.predictions[i] = static_cast<float>(static_cast<double>(i) / 199.0);
  const Scores scores = scores_of(samples, 0);
  expect_near(value_of("auc_roc", samples), threshold_area(scores, 200, true, "trapezoidal"), "roc", 1e-11);
  expect_near(value_of("auc_pr", samples), threshold_area(scores, 200, false, "trapezoidal"), "pr", 1e-11);
}

TEST(Auc, ACurveCountsTheScoresAboveEachOfItsThresholds) {
  Samples samples = random_samples(2, Shape{1}, PredictionKind::labels);
  samples.predictions = {0.2F, 0.9F};
  samples.rows = {0, 1};
  const auto expect_counts = [](const std::string& yaml, const Samples& of) {
    const MetricReport report = report_of(yaml, of);
    ASSERT_EQ(report.tables.size(), 1U) << yaml;
    const std::vector<double>& table = report.tables[0].values;
    for (std::size_t row = 0; row < table.size(); row += kCurveTableColumns) {
      const double threshold = table[row + 1];
      const Counts wanted =
          counts_above(scores_of(of, 0), row == 0 ? -1 : static_cast<double>(static_cast<float>(threshold)));
      EXPECT_EQ(std::vector(table.begin() + static_cast<std::ptrdiff_t>(row) + 2,
                            table.begin() + static_cast<std::ptrdiff_t>(row + kCurveTableColumns)),
                (std::vector{wanted.tp, wanted.fp, wanted.tn, wanted.fn}))
          << yaml << " at " << threshold;
    }
  };
  const Samples many = random_samples(300, Shape{1}, PredictionKind::labels, 0.001);
  for (const char* metric : {"auc_roc", "auc_pr"})
    for (const char* options :
         {"exact: true", "num_thresholds: 200", "num_thresholds: 1500", "num_thresholds: 5000"})
      for (const Samples* of : std::initializer_list<const Samples*>{&samples, &many})
        expect_counts(fmt::format("{{{}: {{curve: true, {}}}}}", metric, options), *of);
}

TEST(Auc, ManyThresholdsApproachTheExactValue) {
  const Samples samples = random_samples(300, Shape{1}, PredictionKind::labels, 0.001);
  const double exact = value_of("{auc_roc: {exact: true}}", samples);
  expect_near(value_of("{auc_roc: {num_thresholds: 5000}}", samples), exact, "roc", 1e-3);
  const double average = value_of("{auc_pr: {exact: true}}", samples);
  expect_near(value_of("{auc_pr: {num_thresholds: 5000, summation: average_precision}}", samples), average,
              "pr", 2e-3);
}

TEST(Auc, AveragesOverLabelsAndClasses) {
  for (const PredictionKind kind : {PredictionKind::labels, PredictionKind::classes}) {
    const Samples samples = random_samples(40, Shape{2, 5}, kind, 0.05);
    Scores all;
    double sum = 0;
    std::vector<double> each;
    for (std::int64_t c = 0; c < 5; ++c) {
      const Scores scores = scores_of(samples, c);
      all.insert(all.end(), scores.begin(), scores.end());
      each.push_back(rank_statistic(scores));
      sum += each.back();
    }
    const auto yaml = [](const std::string& average) {
      return "{auc_roc: {exact: true, average: " + average + "}}";
    };
    expect_near(value_of(yaml("macro"), samples), sum / 5, "macro");
    expect_near(value_of(yaml("micro"), samples), rank_statistic(all), "micro");
    EXPECT_EQ(table_of(yaml("per_class"), samples, "per_class"), each);
    const std::vector<double> by_thresholds =
        table_of("{auc_roc: {average: per_class}}", samples, "per_class");
    for (std::size_t c = 0; c < 5; ++c)
      expect_near(by_thresholds.at(c),
                  threshold_area(scores_of(samples, static_cast<std::int64_t>(c)), 200, true, "trapezoidal"),
                  "thresholds", 1e-11);
    expect_near(value_of("{auc_roc: {average: micro}}", samples),
                threshold_area(all, 200, true, "trapezoidal"), "micro with thresholds", 1e-11);
  }
}

TEST(Auc, LabelsOfOneKindHaveNoArea) {
  Samples samples = random_samples(11, Shape{2}, PredictionKind::labels);
  for (std::size_t i = 0; i < samples.rows.size(); i += 2) samples.rows[i] = 0;
  const std::vector<double> each =
      table_of("{auc_roc: {exact: true, average: per_class}}", samples, "per_class");
  EXPECT_TRUE(std::isnan(each.at(0)));
  EXPECT_EQ(value_of("{auc_roc: {exact: true}}", samples), each.at(1)) << "the other label alone counts";
  samples.rows.assign(samples.rows.size(), 1.0F);
  EXPECT_TRUE(std::isnan(value_of("{auc_roc: {exact: true}}", samples)));
  EXPECT_TRUE(std::isnan(value_of("auc_roc", samples)));
  expect_near(value_of("{auc_pr: {exact: true}}", samples), 1, "every threshold is right");
}

TEST(Auc, ScoresOutsideZeroToOneGiveNaN) {
  for (const float bad : {kNaN, 1.5F, -0.5F})
    for (const char* yaml : {"auc_roc", "{auc_roc: {exact: true}}", "{auc_pr: {exact: true}}",
                             "{f1: {thresholds: best_f1}}", "{f1: {thresholds: best_f1, exact: true}}"}) {
      Samples samples = random_samples(11, Shape{1}, PredictionKind::labels);
      EXPECT_FALSE(std::isnan(value_of(yaml, samples))) << yaml;
      samples.predictions[4] = bad;
      EXPECT_TRUE(std::isnan(value_of(yaml, samples))) << yaml;
    }
}

TEST(Auc, IgnoredLabelsDoNotCount) {
  Samples samples = random_samples(31, Shape{1}, PredictionKind::labels, 0.05);
  Scores scores;
  samples.input.ignore_index = -1;
  for (std::size_t i = 0; i < 31; ++i) {
    if (i % 4 == 1) samples.rows[i] = -1;
    if (i % 4 != 1) scores.push_back({samples.predictions[i], samples.rows[i] == 1});
  }
  EXPECT_EQ(value_of("{auc_roc: {exact: true}}", samples), rank_statistic(scores));
  expect_near(value_of("auc_roc", samples), threshold_area(scores, 200, true, "trapezoidal"), "thresholds",
              1e-11);
}

double f1_of(const Counts& c) { return c.tp == 0 ? 0 : 2 * c.tp / (2 * c.tp + c.fp + c.fn); }

TEST(BestF1, ExactThresholdsAreOptimal) {
  const Samples samples = random_samples(41, Shape{5}, PredictionKind::labels, 0.1);
  const std::string yaml = "{f1: {thresholds: best_f1, exact: true}}";
  const std::vector<double> thresholds = table_of(yaml, samples, "thresholds"),
                            best = table_of(yaml, samples, "best_f1");
  double sum = 0;
  for (std::int64_t c = 0; c < 5; ++c) {
    const Scores scores = scores_of(samples, c);
    double expected = 0;
    for (const Score& s : scores)
      expected =
          std::max(expected, f1_of(counts_above(scores, std::nextafter(static_cast<double>(s.score), -1.0))));
    const auto i = static_cast<std::size_t>(c);
    expect_near(best.at(i), expected, "the best F1");
    expect_near(f1_of(counts_above(scores, thresholds.at(i))), expected, "the F1 at the threshold");
    sum += expected;
  }
  expect_near(value_of(yaml, samples), sum / 5, "macro");
}

TEST(BestF1, GridThresholdIsTheBestOfTheGrid) {
  const Samples samples = random_samples(41, Shape{3}, PredictionKind::labels, 0.1);
  const std::string yaml = "{precision: {thresholds: best_f1, num_thresholds: 21, average: per_class}}";
  const std::vector<double> thresholds = table_of(yaml, samples, "thresholds"),
                            best = table_of(yaml, samples, "best_f1"),
                            precisions = table_of(yaml, samples, "per_class");
  for (std::int64_t c = 0; c < 3; ++c) {
    const Scores scores = scores_of(samples, c);
    double expected = -1, threshold = 0;
    for (int t = 20; t >= 0; --t) {
      const double at = static_cast<double>(static_cast<float>(t == 0    ? -1e-7
                                                               : t == 20 ? 1 + 1e-7
                                                                         : static_cast<double>(t) / 20));
      if (f1_of(counts_above(scores, at)) > expected) {
        expected = f1_of(counts_above(scores, at));
        threshold = at;
      }
    }
    const auto i = static_cast<std::size_t>(c);
    expect_near(best.at(i), expected, "the best F1");
    EXPECT_EQ(static_cast<float>(thresholds.at(i)), static_cast<float>(threshold));
    const Counts counts = counts_above(scores, threshold);
    expect_near(precisions.at(i), counts.tp / (counts.tp + counts.fp), "precision there");
  }
}

/// The thresholds as an option, in the digits of JSON, give the same F1: also between neighbouring float32
/// numbers, and where no label, or each one, is predicted.
TEST(BestF1, ThresholdsCanBeGivenBack) {
  for (const char* exact : {"", ", exact: true"}) {
    Samples samples = random_samples(64, Shape{4}, PredictionKind::labels, 0.1);
    for (std::size_t i = 0; i < 64; ++i) {
      float* const scores = &samples.predictions[4 * i];
      float* const labels = &samples.rows[4 * i];
      const float low =
          i % 2 == 0 ? 0.5F : 0x1.000002p-1F;  // neighbours, of which the midpoint is rounded up
      scores[0] = i % 4 < 2 ? low : std::nextafter(low, 1.0F);
      labels[0] = scores[0] > 0x1.000002p-1F ? 1 : 0;
      labels[1] = 0;
      scores[2] = i < 40 ? 0.0F : scores[2];
      labels[2] = 1;
    }
    const std::string chosen = fmt::format("{{f1: {{thresholds: best_f1, average: per_class{}}}}}", exact);
    const std::vector<double> thresholds = table_of(chosen, samples, "thresholds");
    const std::string given =
        fmt::format("{{f1: {{thresholds: [{}], average: per_class}}}}", fmt::join(thresholds, ", "));
    EXPECT_EQ(table_of(given, samples, "per_class"), table_of(chosen, samples, "best_f1")) << given;
  }
}

TEST(BestF1, AbsentLabelIsNeverPredicted) {
  Samples samples = random_samples(12, Shape{1}, PredictionKind::labels);
  samples.rows.assign(12, 0.0F);
  for (const char* more : {"", ", exact: true"}) {
    const std::string yaml = fmt::format("{{f1: {{thresholds: best_f1{}}}}}", more);
    EXPECT_EQ(value_of(yaml, samples), 0);
    const double threshold = table_of(yaml, samples, "thresholds").at(0);
    for (const float score : samples.predictions) EXPECT_LT(static_cast<double>(score), threshold);
  }
}

}  // namespace
}  // namespace lockstep
