// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// How metrics read a head's outputs and labels. Outputs of a sample are P positions of C numbers (the last
// axis), and every position counts for itself:
//
//   classes  the C numbers belong to classes that exclude one another. Labels: P class indices, or P x C
//            numbers, of which the largest is the class.
//   labels   each number is the probability of a label of its own. Labels: P x C numbers, above 0.5: there.
//   values   the numbers are compared with P x C numbers.
//
// A label that has the value ignore_index counts nowhere, nor does what stands for one that the loss ignores
// (Heads::arrange): a negative index, or NaN.
#pragma once

#include <algorithm>

#include "model/metric.h"

namespace lockstep {

/// Error(config) at the metric's position: it does not fit the head.
[[noreturn]] void refuse_metric(const Params& params, std::string what, std::string advice);

/// The first of the largest numbers; NaN is smaller than all. -1 if all are NaN.
inline std::int64_t index_of_largest(const float* row, std::int64_t count) {
  std::int64_t best = -1;
  for (std::int64_t i = 0; i < count; ++i)
    if (best < 0 ? row[i] == row[i] : row[i] > row[best]) best = i;
  return best;
}

/// Positions whose label is a class.
class ClassCases {
 public:
  ClassCases(const Params& params, const MetricInput& input);

  std::int64_t positions() const { return positions_; }
  std::int64_t classes() const { return classes_; }
  /// f(sample, score, class) for each position that counts.
  template <typename F>
  void for_each(const MetricBatch& batch, F&& f) const {
    for (std::int64_t i = 0; i < batch.n * positions_; ++i) {
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

/// Single yes-or-no questions: is label c there? Of `labels`, or of `classes` one against the others.
class LabelCases {
 public:
  /// `single`: two classes are one question, that for class 1.
  LabelCases(const Params& params, const MetricInput& input, bool single);

  /// Questions per position.
  std::int64_t columns() const { return columns_; }
  /// Questions per sample.
  std::int64_t per_sample() const { return positions_ * columns_; }
  /// f(sample, question of the sample, column, score, truth) for each that counts. `values` as above.
  template <typename F>
  void for_each(const MetricBatch& batch, const float* values, F&& f) const {
    for (std::int64_t i = 0; i < batch.n * positions_; ++i)
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

 private:
  std::int64_t positions_, width_, columns_, offset_ = 0, ignored_;
  bool by_class_, ignores_;
};

/// Numbers that are compared with numbers.
class ValueCases {
 public:
  ValueCases(const Params& params, const MetricInput& input);

  std::int64_t positions() const { return positions_; }
  std::int64_t columns() const { return columns_; }
  /// f(position in the batch, column, prediction, label) for each that counts.
  template <typename F>
  void for_each(const MetricBatch& batch, F&& f) const {
    for (std::int64_t i = 0; i < batch.n * positions_ * columns_; ++i) {
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

/// 0 if there is nothing to divide by.
inline double ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

}  // namespace lockstep
