// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "view/report/score_curve.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lockstep::report {

namespace {

/// Keeps the first and the last position, and some in between that are far enough apart.
void thin(std::vector<CurvePosition>& curve, std::size_t points) {
  if (curve.size() <= points) return;
  std::vector<CurvePosition> kept{curve.front()};
  const double least = 2.0 / static_cast<double>(points);
  for (std::size_t i = 1; i + 1 < curve.size(); ++i)
    if (std::abs(curve[i].x - kept.back().x) + std::abs(curve[i].y - kept.back().y) >= least)
      kept.push_back(curve[i]);
  kept.push_back(curve.back());
  curve = std::move(kept);
}

}  // namespace

ScoreCurve score_curve(std::string name, std::vector<ScoredLabel> scores, std::size_t points) {
  ScoreCurve curve{.name = std::move(name),
                   .roc = {},
                   .precision_recall = {},
                   .auc = std::numeric_limits<double>::quiet_NaN(),
                   .average_precision = std::numeric_limits<double>::quiet_NaN()};
  std::erase_if(scores, [](const ScoredLabel& one) { return !std::isfinite(one.score); });
  const auto positives = static_cast<double>(std::ranges::count_if(scores, &ScoredLabel::positive));
  const double negatives = static_cast<double>(scores.size()) - positives;
  if (positives == 0) return curve;
  std::ranges::sort(scores, std::ranges::greater{}, &ScoredLabel::score);
  double tp = 0, fp = 0, area = 0, precision_area = 0;
  if (negatives > 0) curve.roc.push_back({0, 0});
  for (std::size_t i = 0; i < scores.size();) {
    const double tp_before = tp, fp_before = fp;
    for (const float score = scores[i].score; i < scores.size() && scores[i].score == score; ++i)
      ++(scores[i].positive ? tp : fp);
    area += (fp - fp_before) * (tp + tp_before) / 2;
    precision_area += (tp - tp_before) / positives * tp / (tp + fp);
    if (negatives > 0) curve.roc.push_back({fp / negatives, tp / positives});
    curve.precision_recall.push_back({tp / positives, tp / (tp + fp)});
  }
  if (negatives > 0) curve.auc = area / (positives * negatives);
  curve.average_precision = precision_area;
  thin(curve.roc, points);
  thin(curve.precision_recall, points);
  return curve;
}

}  // namespace lockstep::report
