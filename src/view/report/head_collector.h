// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares the predictions of one head with the true labels, batch by batch, and keeps what a report shows.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/used_dataset.h"
#include "io/prediction_file.h"
#include "model/heads.h"
#include "run/jobs/true_labels.h"
#include "view/report/predictions.h"
#include "view/report/score_curve.h"

namespace lockstep::report {

class HeadCollector {
 public:
  /// `names`: of the outputs; empty: they have none.
  HeadCollector(const Head& head, int number, const TrueLabels& labels, const UsedDataset& data,
                std::span<const std::string> names, std::int64_t mistakes);

  /// `rows`: of these samples of the set, in this order.
  void add(std::span<const std::int64_t> samples, const PredictedRows& rows);
  /// The labels are of a form that predictions can be compared with.
  bool usable() const { return form_ != Form::none; }
  HeadPredictions finish(const Dataset& data);

 private:
  enum class Form {
    none,
    classes,  ///< a class index per position
    labels,   ///< a number per label
    values    ///< a number per output
  };
  struct Found {
    std::int64_t sample = 0;
    double loss = 0, confidence = 0;
    std::string truth, predicted;
  };
  /// A class by its name, or its number.
  std::string name_of(std::int64_t index) const;
  void add_classes(std::int64_t sample, const float* probabilities, const PredictedRows& rows,
                   std::int64_t row);
  void add_labels(std::int64_t sample, const float* logits, const float* truth);
  void add_values(std::int64_t sample, const float* values, const float* truth);
  void keep(std::vector<Found>& list, const Found& found, double Found::*by) const;
  Mistake mistake(const Found& found, const Dataset& data) const;

  Form form_ = Form::none;
  std::int64_t most_, values_, classes_, positions_, ignored_ = -1;
  std::int64_t every_ = 1;                ///< pairs per point of a plot
  std::optional<std::int64_t> left_out_;  ///< a number that does not count as a label
  HeadPredictions result_;
  std::vector<Found> worst_, confident_;
  std::vector<std::vector<ScoredLabel>> scores_;  ///< by class or label
};

}  // namespace lockstep::report
