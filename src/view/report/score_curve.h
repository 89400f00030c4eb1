// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// ROC and precision-recall curves of scores, for pictures. Every distinct score is a threshold.
#pragma once

#include <string>
#include <vector>

#include "view/report/predictions.h"

namespace lockstep::report {

struct ScoredLabel {
  float score;
  bool positive;
};
/// Curves have at most `points` positions; areas are of all scores (Mann and Whitney 1947; average
/// precision).
ScoreCurve score_curve(std::string name, std::vector<ScoredLabel> scores, std::size_t points);

}  // namespace lockstep::report
