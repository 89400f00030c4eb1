// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "model/metrics/score_curves.h"

#include <limits>
#include <tuple>

namespace lockstep {

namespace {

/// The thresholds of tf.metrics.auc, in float32.
std::vector<float> even_thresholds(std::int64_t count) {
  constexpr double kEpsilon = 1e-7;
  std::vector<float> thresholds;
  thresholds.push_back(static_cast<float>(-kEpsilon));
  for (std::int64_t i = 1; i + 1 < count; ++i)
    thresholds.push_back(static_cast<float>(static_cast<double>(i) / static_cast<double>(count - 1)));
  thresholds.push_back(static_cast<float>(1 + kEpsilon));
  return thresholds;
}

bool is_probability(float score) { return score >= 0 && score <= 1; }

}  // namespace

ScoreCurves::ScoreCurves(const CurveOptions& options, const Params& params, const MetricInput& input,
                         bool single)
    : cases_(params, input, single), exact_(options.exact) {
  if (!exact_) {
    thresholds_ = even_thresholds(options.num_thresholds);
    return;
  }
  if (params.given("num_thresholds"))
    throw params.error("num_thresholds", "has no effect with exact: true", "Leave one of them out.");
  // The records of all ranks, and a copy of those that make the curve.
  const double mb = 2 * 1e-6 * sizeof(ScoreRecord) * static_cast<double>(cases_.per_sample()) *
                    static_cast<double>(input.num_samples);
  if (mb > options.memory_mb)
    throw params.error("exact",
                       fmt::format("{} samples with {} scores each may take {:.0f} MB on a rank, and "
                                   "memory_mb is {:.0f}",
                                   input.num_samples, cases_.per_sample(), mb, options.memory_mb),
                       "Remove exact (thresholds take no memory per sample), or raise memory_mb.");
}

std::int64_t ScoreCurves::bin_of(float score) const {
  const auto last = static_cast<std::int64_t>(thresholds_.size()) - 1;
  auto above = static_cast<std::int64_t>(static_cast<double>(score) * static_cast<double>(last)) + 1;
  const auto is_above = [&](std::int64_t i) { return score > thresholds_[static_cast<std::size_t>(i)]; };
  while (above > 0 && !is_above(above - 1)) --above;
  while (above <= last && is_above(above)) ++above;
  return above;
}

void ScoreCurves::add(const MetricBatch& batch, double* state) const {
  const std::int64_t bins = this->bins();
  cases_.for_each(batch, batch.predictions,
                  [&](std::int64_t sample, std::int64_t, std::int64_t column, float score, bool truth) {
                    if (!is_probability(score))
                      state[0] += 1;
                    else if (!exact_)
                      state[1 + (2 * column + (truth ? 0 : 1)) * bins + bin_of(score)] +=
                          batch.weight(sample);
                  });
}

void ScoreCurves::record(const MetricBatch& batch, ScoreRecord* records) const {
  std::fill_n(records, batch.n * cases_.per_sample(), ScoreRecord{0, -1});
  cases_.for_each(batch, batch.predictions,
                  [&](std::int64_t sample, std::int64_t question, std::int64_t, float score, bool truth) {
                    if (is_probability(score))
                      records[sample * cases_.per_sample() + question] = {
                          score, truth ? 1.0F : 0.0F, static_cast<float>(batch.weight(sample))};
                  });
}

Curve ScoreCurves::of_column(std::int64_t column, const double* totals,
                             std::span<const ScoreRecord> records) const {
  if (!exact_) {
    const double* first = totals + 1 + 2 * column * bins();
    return from_bins(std::vector<double>(first, first + 2 * bins()));
  }
  std::vector<ScoreRecord> scores;
  for (std::size_t i = static_cast<std::size_t>(column); i < records.size();
       i += static_cast<std::size_t>(columns()))
    if (records[i].label >= 0) scores.push_back(records[i]);
  return from_scores(std::move(scores));
}

Curve ScoreCurves::of_all(const double* totals, std::span<const ScoreRecord> records) const {
  if (!exact_) {
    std::vector<double> sum(static_cast<std::size_t>(2 * bins()));
    for (std::int64_t i = 0; i < columns() * 2 * bins(); ++i)
      sum[static_cast<std::size_t>(i % (2 * bins()))] += totals[1 + i];
    return from_bins(sum);
  }
  std::vector<ScoreRecord> scores;
  std::copy_if(records.begin(), records.end(), std::back_inserter(scores),
               [](const ScoreRecord& record) { return record.label >= 0; });
  return from_scores(std::move(scores));
}

Curve ScoreCurves::from_bins(const std::vector<double>& bins) const {
  Curve curve;
  const std::size_t thresholds = thresholds_.size();
  const double *positives = bins.data(), *negatives = bins.data() + thresholds + 1;
  // The scores above threshold i are those in the bins after i.
  for (std::size_t i = thresholds; i-- > 0;) {
    curve.positives += positives[i + 1];
    curve.negatives += negatives[i + 1];
    curve.points.push_back({static_cast<double>(thresholds_[i]), curve.positives, curve.negatives});
  }
  return curve;
}

Curve ScoreCurves::from_scores(std::vector<ScoreRecord> scores) const {
  std::sort(scores.begin(), scores.end(),
            [](const ScoreRecord& a, const ScoreRecord& b) {  // equal scores: sums in one order, too
              return std::tie(a.score, a.weight) > std::tie(b.score, b.weight);
            });
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Curve curve;
  curve.exact = true;
  curve.points.push_back({kInfinity, 0, 0, kInfinity});
  for (std::size_t i = 0; i < scores.size();) {
    const float score = scores[i].score;
    for (; i < scores.size() && scores[i].score == score; ++i)
      (scores[i].label > 0 ? curve.positives : curve.negatives) += static_cast<double>(scores[i].weight);
    // Halfway to the next score, which in double is strictly between two float32 numbers.
    const double threshold = i < scores.size()
                                 ? (static_cast<double>(score) + static_cast<double>(scores[i].score)) / 2
                                 : static_cast<double>(score) - 1e-7;
    curve.points.push_back({threshold, curve.positives, curve.negatives, static_cast<double>(score)});
  }
  return curve;
}

void append_curve(const Curve& curve, std::int64_t number, std::int64_t points, std::vector<double>& table) {
  const std::int64_t last = points - 1, last_of_curve = std::ssize(curve.points) - 1;
  std::int64_t at = last_of_curve;  // by rising threshold
  for (std::int64_t i = 0; i < points; ++i) {
    double threshold = static_cast<double>(i) / static_cast<double>(last);
    if (curve.exact) {
      const auto above = static_cast<double>(static_cast<float>(threshold));
      while (i > 0 && at > 0 && curve.points[static_cast<std::size_t>(at)].lowest <= above) --at;
    } else {
      const std::int64_t rising = (2 * i * last_of_curve + last) / (2 * last);  // the nearest
      threshold = static_cast<double>(rising) / static_cast<double>(last_of_curve);
      at = last_of_curve - rising;
    }
    const CurvePoint& point = curve.points[static_cast<std::size_t>(at)];
    table.insert(table.end(), {static_cast<double>(number), threshold, point.tp, point.fp,
                               curve.negatives - point.fp, curve.positives - point.tp});
  }
}

}  // namespace lockstep
