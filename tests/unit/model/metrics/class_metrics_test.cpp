// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Metrics of classes and labels are compared with counts by their definitions.
#include <algorithm>
#include <limits>
#include <map>

#include "metric_testing.h"

namespace lockstep {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

/// A position: its outputs, and its class.
struct Position {
  std::vector<float> numbers;
  std::int64_t sample, label;
};

std::vector<Position> positions_of(const Samples& samples) {
  std::vector<Position> found;
  const std::int64_t classes = samples.input.output.last(), each = samples.elements() / classes;
  for (std::int64_t i = 0; i < samples.n * each; ++i) {
    const auto first = samples.outputs.begin() + i * classes;
    const std::int32_t label = samples.indices.at(static_cast<std::size_t>(i));
    if (samples.input.ignore_index == label) continue;
    found.push_back({{first, first + classes}, i / each, label});
  }
  return found;
}

std::int64_t argmax(const std::vector<float>& numbers) {
  return std::max_element(numbers.begin(), numbers.end()) - numbers.begin();
}

struct Counts {
  double tp = 0, fp = 0, fn = 0;
};
double over(double a, double b) { return b == 0 ? 0 : a / b; }
double precision(const Counts& c) { return over(c.tp, c.tp + c.fp); }
double recall(const Counts& c) { return over(c.tp, c.tp + c.fn); }
double f1(const Counts& c) { return over(2 * precision(c) * recall(c), precision(c) + recall(c)); }
using Measure = double (*)(const Counts&);
const std::map<std::string, Measure> kMeasures = {{"precision", precision}, {"recall", recall}, {"f1", f1}};

/// micro, macro and per class from the counts of each class.
void expect_averages(const Samples& samples, const std::vector<Counts>& counts, const std::string& options) {
  Counts all;
  for (const Counts& c : counts) all = {all.tp + c.tp, all.fp + c.fp, all.fn + c.fn};
  for (const auto& [name, measure] : kMeasures) {
    double mean = 0;
    std::vector<double> each;
    for (const Counts& c : counts) {
      each.push_back(measure(c));
      mean += each.back() / static_cast<double>(counts.size());
    }
    const auto yaml = [&](const std::string& average) {
      return "{" + name + ": {average: " + average + options + "}}";
    };
    expect_near(value_of(yaml("micro"), samples), measure(all), yaml("micro"));
    expect_near(value_of(yaml("macro"), samples), mean, yaml("macro"));
    expect_near(value_of(yaml("per_class"), samples), mean, yaml("per_class"));
    const std::vector<double> table = table_of(yaml("per_class"), samples, "per_class");
    ASSERT_EQ(table.size(), each.size());
    for (std::size_t c = 0; c < each.size(); ++c) expect_near(table[c], each[c], yaml("per_class"));
  }
}

TEST(ClassMetrics, FollowTheirDefinitions) {
  for (const Shape& output : {Shape{3}, Shape{17}, Shape{3, 5}, Shape{2, 3, 4}})
    for (const std::int64_t n : {1, 3, 17})
      for (const bool ignore : {false, true}) {
        Samples samples = random_samples(n, output, PredictionKind::classes);
        if (ignore) samples.input.ignore_index = 1;
        const std::int64_t classes = output.last();
        const std::vector<Position> positions = positions_of(samples);
        std::vector<std::vector<double>> matrix(static_cast<std::size_t>(classes),
                                                std::vector<double>(static_cast<std::size_t>(classes)));
        std::vector<Counts> counts(static_cast<std::size_t>(classes));
        std::map<std::int64_t, bool> all_right;
        double right = 0, in_two = 0;
        for (const Position& p : positions) {
          const std::int64_t predicted = argmax(p.numbers);
          matrix[static_cast<std::size_t>(p.label)][static_cast<std::size_t>(predicted)] += 1;
          right += predicted == p.label ? 1 : 0;
          all_right.try_emplace(p.sample, true).first->second &= predicted == p.label;
          in_two +=
              std::count_if(p.numbers.begin(), p.numbers.end(),
                            [&](float x) { return x > p.numbers[static_cast<std::size_t>(p.label)]; }) < 2
                  ? 1
                  : 0;
        }
        double iou = 0, present = 0, per_class = 0;
        for (std::size_t c = 0; c < counts.size(); ++c) {
          double row = 0, column = 0;
          for (std::size_t other = 0; other < counts.size(); ++other) {
            row += matrix[c][other];
            column += matrix[other][c];
          }
          counts[c] = {matrix[c][c], column - matrix[c][c], row - matrix[c][c]};
          if (row + column > 0) {
            present += 1;
            iou += matrix[c][c] / (row + column - matrix[c][c]);
          }
          per_class += over(matrix[c][c], row) / static_cast<double>(classes);
        }
        const auto total = static_cast<double>(positions.size());
        SCOPED_TRACE(output.to_string() + " x " + std::to_string(n));
        expect_near(value_of("accuracy", samples), over(right, total), "accuracy");
        expect_near(value_of("hamming_loss", samples), over(total - right, total), "hamming_loss");
        expect_near(value_of("{top_k: {k: 2}}", samples), over(in_two, total), "top_k");
        expect_near(value_of("mean_iou", samples), over(iou, present), "mean_iou");
        expect_near(value_of("mean_per_class_accuracy", samples), per_class, "mean_per_class_accuracy");
        const double whole = static_cast<double>(std::count_if(
            all_right.begin(), all_right.end(), [](const auto& entry) { return entry.second; }));
        expect_near(value_of("subset_accuracy", samples), over(whole, static_cast<double>(all_right.size())),
                    "subset_accuracy");
        EXPECT_FALSE(report_of("confusion_matrix", samples).value.has_value());
        const std::vector<double> table = table_of("confusion_matrix", samples, "matrix");
        for (std::size_t i = 0; i < table.size(); ++i)
          EXPECT_EQ(table[i], matrix[i / counts.size()][i % counts.size()]);
        expect_averages(samples, counts, "");
      }
}

TEST(ClassMetrics, LargestOfALabelRowIsTheClass) {
  Samples samples = random_samples(17, Shape{3, 5}, PredictionKind::classes), dense = samples;
  dense.rows.assign(dense.outputs.size(), 0.0F);
  for (std::size_t i = 0; i < dense.indices.size(); ++i)
    dense.rows[i * 5 + static_cast<std::size_t>(dense.indices[i])] = 0.7F;
  dense.indices.clear();
  dense.input.dense_labels = true;
  dense.input.label_columns = 15;
  for (const char* yaml : {"accuracy", "{f1: {average: macro}}", "{top_k: {k: 2}}", "mean_iou", "perplexity",
                           "{auc_roc: {exact: true}}", "{precision_at_k: {k: 2}}", "subset_accuracy"})
    EXPECT_EQ(value_of(yaml, dense, false), value_of(yaml, samples, false)) << yaml;
}

TEST(ClassMetrics, TwoClassesUseOneThreshold) {
  const Samples samples = random_samples(37, Shape{2}, PredictionKind::classes);
  for (const double threshold : {0.5, 0.3, 0.9}) {
    Counts counts;
    for (std::size_t i = 0; i < 37; ++i) {
      const bool predicted = samples.predictions[2 * i + 1] > static_cast<float>(threshold);
      const bool truth = samples.indices[i] == 1;
      (predicted ? (truth ? counts.tp : counts.fp) : counts.fn) += predicted || truth ? 1 : 0;
    }
    for (const auto& [name, measure] : kMeasures)
      expect_near(value_of(fmt::format("{{{}: {{thresholds: {}}}}}", name, threshold), samples),
                  measure(counts), name);
  }
}

TEST(LabelMetrics, FollowTheirDefinitions) {
  for (const Shape& output : {Shape{1}, Shape{3}, Shape{17}, Shape{3, 5}})
    for (const std::int64_t n : {1, 3, 17})
      for (const bool ignore : {false, true}) {
        Samples samples = random_samples(n, output, PredictionKind::labels);
        if (ignore) {
          samples.input.ignore_index = -1;
          for (std::size_t i = 0; i < samples.rows.size(); i += 3) samples.rows[i] = -1;
        }
        const auto labels = static_cast<std::size_t>(output.last());
        std::string list;
        std::vector<float> thresholds;
        for (std::size_t c = 0; c < labels; ++c) {
          thresholds.push_back(static_cast<float>(c + 1) / static_cast<float>(labels + 1));
          list += fmt::format("{}{}", c == 0 ? "" : ", ", thresholds.back());
        }
        std::vector<Counts> counts(labels);
        double right = 0, total = 0;
        std::map<std::size_t, bool> all_right;
        for (std::size_t i = 0; i < samples.rows.size(); ++i) {
          if (ignore && samples.rows[i] == -1) continue;
          const bool truth = samples.rows[i] == 1,
                     predicted = samples.predictions[i] > thresholds[i % labels];
          Counts& count = counts[i % labels];
          if (truth && predicted) count.tp += 1;
          if (!truth && predicted) count.fp += 1;
          if (truth && !predicted) count.fn += 1;
          right += truth == predicted ? 1 : 0;
          total += 1;
          const std::size_t sample = i / static_cast<std::size_t>(samples.elements());
          all_right.try_emplace(sample, true).first->second &= truth == predicted;
        }
        SCOPED_TRACE(output.to_string() + " x " + std::to_string(n));
        const auto yaml = [&](const std::string& name) {
          return "{" + name + ": {threshold: [" + list + "]}}";
        };
        expect_near(value_of(yaml("accuracy"), samples), over(right, total), "accuracy");
        expect_near(value_of(yaml("hamming_loss"), samples), over(total - right, total), "hamming_loss");
        const double whole = static_cast<double>(std::count_if(
            all_right.begin(), all_right.end(), [](const auto& entry) { return entry.second; }));
        expect_near(value_of(yaml("subset_accuracy"), samples),
                    over(whole, static_cast<double>(all_right.size())), "subset_accuracy");
        expect_averages(samples, counts, ", thresholds: [" + list + "]");
      }
}

TEST(LabelMetrics, OneLabelCountsAsTwoClasses) {
  const Samples samples = random_samples(29, Shape{4, 1}, PredictionKind::labels);
  std::vector<double> matrix(4);
  for (std::size_t i = 0; i < samples.rows.size(); ++i)
    matrix[(samples.rows[i] == 1 ? 2U : 0U) + (samples.predictions[i] > 0.3F ? 1U : 0U)] += 1;
  EXPECT_EQ(table_of("{confusion_matrix: {threshold: 0.3}}", samples, "matrix"), matrix);
  const double mean =
      (matrix[0] / (matrix[0] + matrix[1] + matrix[2]) + matrix[3] / (matrix[3] + matrix[1] + matrix[2])) / 2;
  expect_near(value_of("{mean_iou: {threshold: 0.3}}", samples), mean, "mean_iou");
}

TEST(TopK, TiesCountAndNonFiniteNumbersDoNot) {
  Samples samples = random_samples(4, Shape{4}, PredictionKind::classes);
  samples.outputs = {1, 1, 1, 0, /**/ 3, 2, 2, 1, /**/ 1, kNaN, 0, 0, /**/ 5, 4, 3, 2};
  samples.indices = {2, 2, 0, 3};
  EXPECT_EQ(value_of("{top_k: {k: 1}}", samples), 0.25);  // the first one only
  EXPECT_EQ(value_of("{top_k: {k: 2}}", samples), 0.5);   // the second, too
  EXPECT_EQ(value_of("{top_k: {k: 4}}", samples), 0.75);  // never the third
}

/// The ids of the k largest: of equal ones the lower index first.
std::vector<std::int64_t> first_of(const std::vector<float>& numbers, std::size_t k) {
  std::vector<std::int64_t> order(numbers.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return numbers[static_cast<std::size_t>(a)] > numbers[static_cast<std::size_t>(b)];
  });
  order.resize(k);
  return order;
}

TEST(AtK, ComparesTheFirstKWithTheLabels) {
  for (const std::size_t k : {1U, 2U, 5U}) {
    const Samples samples = random_samples(23, Shape{7}, PredictionKind::labels);
    double found = 0, labels = 0, precision_sum = 0, class_found = 0, class_labels = 0, class_first = 0;
    for (std::size_t i = 0; i < 23; ++i) {
      const std::vector<float> numbers(samples.outputs.begin() + static_cast<std::ptrdiff_t>(7 * i),
                                       samples.outputs.begin() + static_cast<std::ptrdiff_t>(7 * i + 7));
      const auto is_label = [&](std::int64_t c) {
        return samples.rows[7 * i + static_cast<std::size_t>(c)] == 1;
      };
      double hits = 0, own = 0, sum = 0;
      for (std::int64_t c = 0; c < 7; ++c) own += is_label(c) ? 1 : 0;
      const std::vector<std::int64_t> first = first_of(numbers, k);
      for (std::size_t r = 0; r < k; ++r) {
        if (!is_label(first[r])) continue;
        hits += 1;
        sum += hits / static_cast<double>(r + 1);
      }
      found += hits;
      labels += own;
      precision_sum += over(sum, std::min(own, static_cast<double>(k)));
      const bool in_first = std::find(first.begin(), first.end(), 3) != first.end();
      class_found += in_first && is_label(3) ? 1 : 0;
      class_labels += is_label(3) ? 1 : 0;
      class_first += in_first ? 1 : 0;
    }
    const auto yaml = [&](const std::string& name, const std::string& more = "") {
      return fmt::format("{{{}: {{k: {}{}}}}}", name, k, more);
    };
    expect_near(value_of(yaml("recall_at_k"), samples), over(found, labels), "recall");
    expect_near(value_of(yaml("precision_at_k"), samples), found / (23.0 * static_cast<double>(k)),
                "precision");
    expect_near(value_of(yaml("recall_at_k", ", class_id: 3"), samples), over(class_found, class_labels),
                "r3");
    expect_near(value_of(yaml("precision_at_k", ", class_id: 3"), samples), over(class_found, class_first),
                "p3");
    expect_near(value_of(yaml("average_precision_at_k"), samples, false), precision_sum / 23, "average");
  }
}

TEST(AtK, InvalidIndicesAreLabelsNotFound) {
  Samples samples = random_samples(2, Shape{4}, PredictionKind::classes);
  samples.outputs = {4, 3, 2, 1, /**/ 1, 1, 2, 1};
  samples.indices = {0, 9, 1, /**/ 2, 2, 3};
  samples.input.label_columns = 3;
  EXPECT_EQ(value_of("{recall_at_k: {k: 2}}", samples), 3.0 / 5);  // 0, 1 of {0, 9, 1}; 2 of {2, 3}
  EXPECT_EQ(value_of("{precision_at_k: {k: 2}}", samples), 3.0 / 4);
  samples.input.ignore_index = 9;
  EXPECT_EQ(value_of("{recall_at_k: {k: 2}}", samples), 3.0 / 4);
}

TEST(AtK, IgnoredOutputsAreLeftOut) {
  Samples samples = random_samples(2, Shape{2}, PredictionKind::labels);
  samples.input.ignore_index = -1;
  samples.outputs = {2, 1, /**/ 1, 2};
  samples.rows = {1, 0, /**/ -1, 0};
  // The second row has one output that counts, and no label: it is a miss.
  EXPECT_EQ(value_of("{precision_at_k: {k: 1}}", samples), 0.5);
  EXPECT_EQ(value_of("{average_precision_at_k: {k: 1}}", samples), 0.5);
  EXPECT_EQ(value_of("{recall_at_k: {k: 1}}", samples), 1);
  samples.rows = {-1, 1, /**/ -1, -1};
  // The largest output of the first row is ignored and takes no place; the second row does not count.
  EXPECT_EQ(value_of("{precision_at_k: {k: 1}}", samples), 1);
  EXPECT_EQ(value_of("{precision_at_k: {k: 2}}", samples), 1) << "there is one place";
  EXPECT_EQ(value_of("{average_precision_at_k: {k: 1}}", samples), 1);
  EXPECT_EQ(value_of("{precision_at_k: {k: 1, class_id: 0}}", samples), 0);
}

TEST(ClassMetrics, NoSamplesGiveZero) {
  Samples samples = random_samples(3, Shape{3}, PredictionKind::classes);
  samples.indices.assign(3, 2);
  samples.input.ignore_index = 2;
  for (const char* yaml : {"accuracy", "hamming_loss", "subset_accuracy", "{top_k: {k: 1}}", "mean_iou",
                           "mean_per_class_accuracy", "f1", "{precision: {average: micro}}",
                           "{recall_at_k: {k: 1}}", "{average_precision_at_k: {k: 1}}"})
    EXPECT_EQ(value_of(yaml, samples), 0) << yaml;
}

TEST(ClassMetrics, NaNOutputsAreNeverCorrect) {
  Samples samples = random_samples(2, Shape{3}, PredictionKind::classes);
  samples.outputs = {kNaN, kNaN, kNaN, kNaN, 1, 0};
  samples.indices = {0, 1};
  EXPECT_EQ(value_of("accuracy", samples), 0.5);  // of the second one, 1 is the largest number
  EXPECT_EQ(value_of("{recall: {average: micro}}", samples), 0.5);
  EXPECT_EQ(value_of("{precision: {average: micro}}", samples), 1) << "what is NaN predicts no class";
  EXPECT_EQ(table_of("confusion_matrix", samples, "matrix"),
            (std::vector<double>{0, 0, 0, 0, 1, 0, 0, 0, 0}));
}

}  // namespace
}  // namespace lockstep
