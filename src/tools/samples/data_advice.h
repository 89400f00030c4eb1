// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What looks wrong about the data sets of a configuration, and what to do about it. For `lockstep data`.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "data/reader_dataset.h"
#include "tools/samples/sample_statistics.h"

namespace lockstep {

class DataFindings {
 public:
  /// Values as the model gets them.
  /// `names`: of the channels (feature_names.h), or empty.
  void add_values(bool training, const FeatureStatistics& features, const std::vector<std::string>& names);
  void add_labels(bool training, const LabelStatistics& labels);
  void add_reading(bool training, const ReaderDataset& data);
  /// Each only once.
  void add(std::vector<std::string> lines);
  /// Pairs (of the training set, of the evaluation set) with equal features.
  void add_equal(const std::vector<std::pair<std::int64_t, std::int64_t>>& pairs, const Dataset& train,
                 const Dataset& eval);
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  std::vector<std::string> lines_;
  LabelStatistics train_labels_;
};

}  // namespace lockstep
