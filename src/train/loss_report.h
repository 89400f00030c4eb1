// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// From the heads' sums to the numbers that a run reports: the total loss, each part of it, accuracy.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "train/loss_stage.h"

namespace lockstep {

class LossReport {
 public:
  /// `regularized`: the loss has a part that no head gives.
  explicit LossReport(const Heads& heads, bool regularized = false);

  /// Doubles of a leaf of the sum over microshards (SmallSum).
  int width() const { return kPerHead * heads_.size(); }
  /// A microshard's leaf.
  static void fill(std::span<const HeadSums> sums, double* leaf);

  struct Numbers {
    double loss = 0;      ///< the sum of the heads' mean losses times their weights
    double accuracy = 0;  ///< of Heads::only_classifier(), or 0
  };
  /// `totals`: the sum of all leaves, width() numbers. `parts` gets the values of names(). Without a position
  /// that counts, a head's loss is 0.
  Numbers evaluate(const double* totals, std::span<double> parts, double regularization = 0) const;

  /// What is reported beside loss and accuracy: loss/<head> for heads with names, loss/regularization,
  /// <head>/accuracy where there are several.
  std::span<const std::string> names() const { return names_; }

 private:
  static constexpr int kPerHead = 4;
  const Heads& heads_;
  bool regularized_;
  std::vector<std::string> names_;
};

/// A part that is an accuracy: left out where the model does not report any.
bool is_accuracy(std::string_view part);

}  // namespace lockstep
