// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Computes the numbers that a run reports from the heads' sums: the total loss, its parts, accuracy.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "train/loss_stage.h"

namespace lockstep {

class LossReport {
 public:
  /// `regularized`: the loss includes a regularization part.
  explicit LossReport(const Heads& heads, bool regularized = false);

  /// Doubles in a leaf of the sum over microshards (SmallSum).
  int width() const { return kPerHead * heads_.size(); }
  /// Fills a microshard's leaf.
  static void fill(std::span<const HeadSums> sums, double* leaf);

  struct Numbers {
    double loss = 0;      ///< the sum of the heads' mean losses times their weights
    double accuracy = 0;  ///< of Heads::only_classifier(), or 0
  };
  /// `totals`: the sum of all leaves, width() numbers. `parts` receives the values of names(). The loss or
  /// accuracy of a head is `nothing` if no position of it counts; so is the whole loss if none counts at all.
  /// NaN has no sign.
  Numbers evaluate(const double* totals, std::span<double> parts, double regularization = 0,
                   double nothing = 0) const;
  /// Whether something of the head counts.
  static bool counts(const double* totals, int head) { return totals[head * kPerHead + 2] > 0; }

  /// The parts, reported in addition to loss and accuracy: loss/<head> for named heads,
  /// loss/regularization, and <head>/accuracy if there are several heads.
  std::span<const std::string> names() const { return names_; }

 private:
  static constexpr int kPerHead = 4;
  const Heads& heads_;
  bool regularized_;
  std::vector<std::string> names_;
};

}  // namespace lockstep
