// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/loss_report.h"

#include "core/plain_nan.h"

namespace lockstep {

namespace {
double ratio(double sum, double count, double nothing) {
  return count > 0 ? plain_nan(sum / count) : nothing;
}
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

LossReport::Numbers LossReport::evaluate(const double* totals, std::span<double> parts, double regularization,
                                         double nothing) const {
  Numbers numbers;
  bool any = false;
  auto part = parts.begin();
  const double* head_totals = totals;
  for (const Head& head : heads_) {
    const double loss = ratio(head_totals[0], head_totals[2], nothing);
    if (head_totals[2] > 0) {
      numbers.loss += head.weight * loss;
      any = true;
    }
    if (!head.name.empty()) *part++ = loss;
    if (&head == heads_.only_classifier()) numbers.accuracy = ratio(head_totals[1], head_totals[3], nothing);
    head_totals += kPerHead;
  }
  if (!any) numbers.loss = nothing;
  if (regularized_) {
    numbers.loss += regularization;
    *part++ = regularization;
  }
  head_totals = totals;
  for (const Head& head : heads_) {
    if (heads_.size() > 1 && head.loss->has_classes())
      *part++ = ratio(head_totals[1], head_totals[3], nothing);
    head_totals += kPerHead;
  }
  numbers.loss = plain_nan(numbers.loss);
  return numbers;
}

}  // namespace lockstep
