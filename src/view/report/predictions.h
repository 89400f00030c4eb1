// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What the newest checkpoint of a run says about its evaluation set, computed for a report on one rank: the
// mistakes with their pictures, where there are classes the confusion matrix and the curves of scores, and
// where there are numbers what was predicted over what is true.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "view/report/opened_run.h"
#include "view/report/parity.h"

namespace lockstep::report {

/// A point of a ROC curve (x: false positive rate, y: true positive rate) or of a curve of precision (y) over
/// recall (x).
struct CurvePosition {
  double x = 0, y = 0;
};

/// The curve of one class against the others, or of the only label.
struct ScoreCurve {
  std::string name;
  std::vector<CurvePosition> roc, precision_recall;
  double auc = 0, average_precision = 0;  ///< NaN: no positives, or no negatives
};

struct Mistake {
  std::int64_t sample = 0;
  std::string where;  ///< its origin
  std::string truth, predicted;
  double loss = 0;        ///< what the list is ordered by
  double confidence = 0;  ///< probability of what was predicted; NaN: there are none
  std::string png;        ///< bytes; empty: no picture
  std::string features;   ///< instead of a picture: some numbers
};

struct HeadPredictions {
  std::string name;  ///< of the head; empty: the only one
  std::int64_t samples = 0, wrong = 0;
  bool has_classes = false;
  std::string as_trained;  ///< why values are in units of training; empty: they are in those of the data
  std::string loss_name;   ///< "cross entropy", "squared error"
  std::vector<Mistake> worst, confident;  ///< largest loss; wrong with the highest probability
  std::int64_t classes = 0;
  std::vector<double> confusion;  ///< classes x classes; empty: not one class per sample
  std::vector<std::string> class_names;
  std::vector<ScoreCurve> curves;
  std::vector<ParityColumn> parity;  ///< of numbers: by target, or one of all where there are many
};

struct Predictions {
  std::vector<HeadPredictions> heads;
  std::int64_t step = 0;  ///< of the checkpoint
  bool averaged = false;
  std::string problem;  ///< why there are none
};

struct PredictionLimits {
  std::int64_t mistakes = 12;      ///< of each list; 0: nothing is computed
  bool whatever_it_takes = false;  ///< also for a large set
  std::string checkpoint = {};     ///< a file, "last" or "best"; empty: the last
};
/// Throws nothing but Error(bug).
Predictions predict_for_report(OpenedRun& opened, const PredictionLimits& limits);

}  // namespace lockstep::report
