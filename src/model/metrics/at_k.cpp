// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares the k largest outputs of a position with its set of labels. Of equal outputs the lower index comes
// first; NaN comes last. Outputs whose label is ignored are left out, and so are positions without another
// one.
//   recall_at_k             labels among them / labels, from counts over all positions
//   precision_at_k          labels among them / k, from counts over all positions
//   average_precision_at_k  mean over positions of
//                           (sum over hits at rank i of precision at i) / min(k, labels)
// With class_id only that class counts.
#include <cmath>

#include "config/option.h"
#include "model/metric.h"
#include "model/metric_cases.h"

namespace lockstep {

namespace {

struct Options {
  std::int64_t k = 0;
  std::optional<std::int64_t> class_id;
};
constexpr ParamSpec kK =
    option<&Options::k>("k", "5", between(1, 2147483647), "Number of largest outputs that count.");
constexpr ParamSpec kAtKTable[] = {
    kK, option<&Options::class_id>("class_id", "null", between(0, 2147483647).or_null(),
                                   "Only this class counts; null: all.")};
constexpr ParamSpec kAverageTable[] = {kK};

/// Positions with sets of labels: rows of P x C numbers, P class indices, or any number of class indices for
/// one position. An index that is no class counts as a label that is never found.
class LabelSets {
 public:
  LabelSets(const Params& params, const MetricInput& input)
      : classes_(input.output.last()),
        positions_(input.output.num_elements() / std::max<std::int64_t>(classes_, 1)),
        columns_(input.dense_labels ? classes_ : input.label_columns / std::max<std::int64_t>(positions_, 1)),
        ignored_(input.ignore_index),
        k_(params.as<Options>().k) {
    if (input.predictions == PredictionKind::values)
      refuse_metric(params, "needs classes or labels, and the head's loss has none",
                    "If the outputs are such, set `predictions: sigmoid` or `softmax`.");
    const bool fits = input.dense_labels ? input.label_columns == positions_ * classes_
                      : positions_ == 1  ? input.label_columns >= 1
                                         : input.label_columns == positions_;
    if (!fits)
      refuse_metric(params,
                    fmt::format("outputs of {} do not fit {} {} per sample", input.output.to_string(),
                                input.label_columns, input.dense_labels ? "label values" : "class indices"),
                    "Correct the head's label columns.");
    if (k_ > classes_)
      throw params.error(option_name<&Options::k>(params), fmt::format("{} of {} outputs", k_, classes_),
                         "Take a smaller k.");
  }

  std::int64_t classes() const { return classes_; }
  /// The number of largest outputs that count.
  std::int64_t k() const { return k_; }

  /// A position: its outputs, and its labels, each once.
  struct Position {
    const float* numbers = nullptr;
    std::vector<std::int64_t> labels;
    std::vector<bool> left_out;    ///< by output; empty: none is
    std::int64_t num_outputs = 0;  ///< that are not left out
    double weight = 1;
  };

  /// Calls f(position) for each one that has outputs and labels that count.
  template <typename F>
  void for_each(const MetricBatch& batch, F&& f) const {
    Position position;
    std::vector<std::int64_t>& labels = position.labels;
    for (std::int64_t i = 0; i < batch.n * positions_; ++i) {
      position.weight = batch.weight(i / positions_);
      if (position.weight == 0) continue;
      labels.clear();
      position.left_out.clear();
      position.numbers = batch.outputs + i * classes_;
      position.num_outputs = classes_;
      bool ignored = false;  // a class index
      for (std::int64_t j = 0; j < columns_; ++j) {
        const std::int64_t at = i * columns_ + j;
        if (batch.labels.indices != nullptr) {
          const std::int64_t label = batch.labels.indices[at];
          if (label < 0 || ignored_ == label) {
            ignored = true;
          } else if (std::find(labels.begin(), labels.end(), label) == labels.end()) {
            labels.push_back(label);
          }
        } else if (std::isnan(batch.labels.rows[at]) ||
                   (ignored_ && batch.labels.rows[at] == static_cast<float>(*ignored_))) {
          position.left_out.resize(static_cast<std::size_t>(classes_), false);
          position.left_out[static_cast<std::size_t>(j)] = true;
          --position.num_outputs;
        } else if (batch.labels.rows[at] > 0.5F) {
          labels.push_back(j);
        }
      }
      if (position.num_outputs > 0 && (!ignored || !labels.empty())) f(position);
    }
  }

  /// The number of outputs that come before that of `label`; all if it is no class.
  std::int64_t rank_of(const Position& position, std::int64_t label) const {
    const auto is_left_out = [&](std::int64_t c) {
      return !position.left_out.empty() && position.left_out[static_cast<std::size_t>(c)];
    };
    if (label < 0 || label >= classes_ || is_left_out(label)) return classes_;
    const float* const numbers = position.numbers;
    const float own = numbers[label];
    std::int64_t before = 0;
    for (std::int64_t c = 0; c < classes_; ++c) {
      const bool equal = numbers[c] == own || (numbers[c] != numbers[c] && own != own);
      const bool larger = numbers[c] > own || (own != own && numbers[c] == numbers[c]);
      before += !is_left_out(c) && (larger || (equal && c < label)) ? 1 : 0;
    }
    return before;
  }

 private:
  std::int64_t classes_, positions_, columns_;
  std::optional<std::int64_t> ignored_;
  std::int64_t k_;
};

/// State: labels found, then labels (recall) or places among the first k (precision).
template <bool kRecall>
class AtK final : public Metric {
 public:
  AtK(const Params& params, const MetricInput& input)
      : sets_(params, input), k_(sets_.k()), class_id_(params.as<Options>().class_id) {
    if (class_id_ && *class_id_ >= sets_.classes())
      throw params.error(option_name<&Options::class_id>(params),
                         fmt::format("{} is none of {} classes", *class_id_, sets_.classes()),
                         "Classes count from 0.");
  }
  bool needs_predictions() const override { return false; }
  bool needs_outputs() const override { return true; }
  std::int64_t width() const override { return 2; }
  void add(const MetricBatch& batch, double* state) const override {
    sets_.for_each(batch, [&](const LabelSets::Position& position) {
      const std::vector<std::int64_t>& labels = position.labels;
      std::int64_t found = 0, all = kRecall ? static_cast<std::int64_t>(labels.size())
                                            : std::min(k_, position.num_outputs);
      if (class_id_) {
        const bool is_label = std::find(labels.begin(), labels.end(), *class_id_) != labels.end();
        const bool in_first = sets_.rank_of(position, *class_id_) < k_;
        found = is_label && in_first ? 1 : 0;
        all = (kRecall ? is_label : in_first) ? 1 : 0;
      } else {
        for (const std::int64_t label : labels) found += sets_.rank_of(position, label) < k_ ? 1 : 0;
      }
      state[0] += position.weight * static_cast<double>(found);
      state[1] += position.weight * static_cast<double>(all);
    });
  }
  MetricReport report(const double* totals, std::span<ScoreRecord>) const override {
    return {ratio(totals[0], totals[1]), {}};
  }

 private:
  LabelSets sets_;
  std::int64_t k_;
  std::optional<std::int64_t> class_id_;
};

class AveragePrecisionAtK final : public Metric {
 public:
  AveragePrecisionAtK(const Params& params, const MetricInput& input) : sets_(params, input), k_(sets_.k()) {}
  bool needs_predictions() const override { return false; }
  bool needs_outputs() const override { return true; }
  std::int64_t width() const override { return 2; }
  void add(const MetricBatch& batch, double* state) const override {
    std::vector<std::int64_t> ranks;
    sets_.for_each(batch, [&](const LabelSets::Position& position) {
      const std::vector<std::int64_t>& labels = position.labels;
      ranks.clear();
      for (const std::int64_t label : labels)
        if (const std::int64_t rank = sets_.rank_of(position, label); rank < k_) ranks.push_back(rank);
      std::sort(ranks.begin(), ranks.end());
      double sum = 0;
      for (std::size_t hit = 0; hit < ranks.size(); ++hit)
        sum += static_cast<double>(hit + 1) / static_cast<double>(ranks[hit] + 1);
      state[0] += position.weight *
                  ratio(sum, static_cast<double>(std::min(k_, static_cast<std::int64_t>(labels.size()))));
      state[1] += position.weight;
    });
  }
  MetricReport report(const double* totals, std::span<ScoreRecord>) const override {
    return {ratio(totals[0], totals[1]), {}};
  }

 private:
  LabelSets sets_;
  std::int64_t k_;
};

template <typename T>
std::unique_ptr<Metric> make(const Params& params, const MetricInput& input) {
  return std::make_unique<T>(params, input);
}

}  // namespace

extern const MetricEntry kPrecisionAtKMetric = {
    "precision_at_k", "fraction of the k largest outputs that are labels", kAtKTable, true, make<AtK<false>>,
    Direction::max};
extern const MetricEntry kRecallAtKMetric = {
    "recall_at_k",   "fraction of the labels that are among the k largest outputs",
    kAtKTable,       true,
    make<AtK<true>>, Direction::max};
extern const MetricEntry kAveragePrecisionAtKMetric = {
    "average_precision_at_k",
    "mean over positions of the precision at each hit among the k largest outputs",
    kAverageTable,
    true,
    make<AveragePrecisionAtK>,
    Direction::max};

}  // namespace lockstep
