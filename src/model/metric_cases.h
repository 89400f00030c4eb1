// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// How metrics read a head's outputs and labels. The outputs of a sample are P positions of C numbers (the
// last axis). Every position counts separately:
//
//   classes  the C numbers belong to exclusive classes. Labels: P class indices, or P x C numbers, whose
//            largest is the class.
//   labels   each number is the probability of one label. Labels: P x C numbers; above 0.5 means present.
//   values   the numbers are compared with P x C numbers.
//
// Samples of weight 0 do not count. A label with the value ignore_index does not count. Nor does a label that
// the loss ignores; Heads::arrange makes it a negative index or NaN.
#pragma once

#include <algorithm>

#include "model/metric.h"

namespace lockstep {

/// Throws Error(config) at the metric's position, because the metric does not fit the head.
[[noreturn]] void refuse_metric(const Params& params, std::string what, std::string advice);

/// The index of the first of the largest numbers. NaN is smaller than all numbers; -1 if all are NaN.
inline std::int64_t index_of_largest(const float* row, std::int64_t count) {
  std::int64_t best = -1;
  for (std::int64_t i = 0; i < count; ++i)
    if (best < 0 ? row[i] == row[i] : row[i] > row[best]) best = i;
  return best;
}

/// The positions of samples whose labels are classes.
class ClassCases {
 public:
  ClassCases(const Params& params, const MetricInput& input);

  std::int64_t positions() const { return positions_; }
  std::int64_t classes() const { return classes_; }
  /// Calls f(sample, score, class) for each position that counts.
  template <typename F>
  void for_each(const MetricBatch& batch, F&& f) const {
    for (std::int64_t i = 0; i < batch.n * positions_; ++i) {
      if (batch.weight(i / positions_) == 0) continue;
      const std::int64_t label = label_of(batch.labels, i);
      if (label < 0 || (ignores_ && label == ignored_)) continue;
      check_range(label);
      f(i / positions_, batch.scores[i], label);
    }
  }

 private:
  std::int64_t label_of(const Labels& labels, std::int64_t i) const {
    return labels.indices != nullptr ? labels.indices[i]
                                     : index_of_largest(labels.rows + i * classes_, classes_);
  }
  void check_range(std::int64_t label) const {
    if (label >= classes_) [[unlikely]]
      fail(label);
  }
  [[noreturn]] void fail(std::int64_t label) const;

  std::int64_t positions_, classes_, ignored_;
  bool ignores_;
};

/// Binary cases: is label c present? For `classes`, each class against the others.
class LabelCases {
 public:
  /// `single`: two classes give one case per position, that of class 1.
  LabelCases(const Params& params, const MetricInput& input, bool single);

  /// Cases per position.
  std::int64_t columns() const { return columns_; }
  /// Cases per sample.
  std::int64_t per_sample() const { return positions_ * columns_; }
  /// Calls f(sample, case of the sample, column, score, truth) for each case that counts. `values` are the
  /// outputs or the predictions.
  template <typename F>
  void for_each(const MetricBatch& batch, const float* values, F&& f) const {
    for (std::int64_t i = 0; i < batch.n * positions_; ++i) {
      if (batch.weight(i / positions_) == 0) continue;
      for (std::int64_t c = 0; c < columns_; ++c) {
        const std::int64_t at = i * width_ + c + offset_;
        bool truth = false;
        if (by_class_) {
          const std::int64_t label = batch.labels.indices != nullptr
                                         ? batch.labels.indices[i]
                                         : index_of_largest(batch.labels.rows + i * width_, width_);
          if (label < 0 || (ignores_ && label == ignored_)) continue;
          truth = label == c + offset_;
        } else {
          const float label = batch.labels.indices != nullptr ? static_cast<float>(batch.labels.indices[at])
                                                              : batch.labels.rows[at];
          if (label != label || (ignores_ && label == static_cast<float>(ignored_))) continue;
          truth = label > 0.5F;
        }
        f(i / positions_, i % positions_ * columns_ + c, c, values[at], truth);
      }
    }
  }

 private:
  std::int64_t positions_, width_, columns_, offset_ = 0, ignored_;
  bool by_class_, ignores_;
};

/// Predicted numbers with their labels.
class ValueCases {
 public:
  ValueCases(const Params& params, const MetricInput& input);

  std::int64_t positions() const { return positions_; }
  std::int64_t columns() const { return columns_; }
  /// The weight of the sample of a position in the batch.
  double weight(const MetricBatch& batch, std::int64_t position) const {
    return batch.weight(position / positions_);
  }
  /// Calls f(position in the batch, column, prediction, label) for each number that counts.
  template <typename F>
  void for_each(const MetricBatch& batch, F&& f) const {
    for (std::int64_t i = 0; i < batch.n * positions_ * columns_; ++i) {
      if (weight(batch, i / columns_) == 0) continue;
      const double label = batch.labels.indices != nullptr ? static_cast<double>(batch.labels.indices[i])
                                                           : static_cast<double>(batch.labels.rows[i]);
      if (label != label || (ignores_ && label == static_cast<double>(ignored_))) continue;
      f(i / columns_, i % columns_, static_cast<double>(batch.predictions[i]), label);
    }
  }

 private:
  std::int64_t positions_, columns_, ignored_;
  bool ignores_;
};

/// part / whole; 0 if whole is 0.
inline double ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

}  // namespace lockstep
