// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/loss_report.h"

namespace lockstep {

namespace {
double ratio(double sum, double count) { return count > 0 ? sum / count : 0.0; }
}  // namespace

LossReport::LossReport(const Heads& heads, bool regularized) : heads_(heads), regularized_(regularized) {
  for (const Head& head : heads)
    if (!head.name.empty()) names_.push_back("loss/" + head.name);
  if (regularized) names_.push_back("loss/regularization");
  for (const Head& head : heads)
    if (heads.size() > 1 && head.loss->has_classes()) names_.push_back(head.name + "/accuracy");
}

void LossReport::fill(std::span<const HeadSums> sums, double* leaf) {
  for (const HeadSums& head : sums) {
    *leaf++ = head.sums.loss;
    *leaf++ = static_cast<double>(head.sums.correct);
    *leaf++ = head.counts.divisor;
    *leaf++ = head.counts.positions;
  }
}

LossReport::Numbers LossReport::evaluate(const double* totals, std::span<double> parts,
                                         double regularization) const {
  Numbers numbers;
  auto part = parts.begin();
  const double* head_totals = totals;
  for (const Head& head : heads_) {
    const double loss = ratio(head_totals[0], head_totals[2]);
    numbers.loss += head.weight * loss;
    if (!head.name.empty()) *part++ = loss;
    if (&head == heads_.only_classifier()) numbers.accuracy = ratio(head_totals[1], head_totals[3]);
    head_totals += kPerHead;
  }
  if (regularized_) {
    numbers.loss += regularization;
    *part++ = regularization;
  }
  head_totals = totals;
  for (const Head& head : heads_) {
    if (heads_.size() > 1 && head.loss->has_classes()) *part++ = ratio(head_totals[1], head_totals[3]);
    head_totals += kPerHead;
  }
  return numbers;
}

}  // namespace lockstep
