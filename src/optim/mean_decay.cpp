// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "optim/mean_decay.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace lockstep {

DecayNumber::DecayNumber(ScheduledNumber&& number) : ScheduledNumber(std::move(number)) {
  if (schedule().empty() && !(static_cast<float>(at(0)) < 1.0F))
    throw error(fmt::format("'{}' is 1 when rounded to float32", option()));
}

CorrectedDecayNumber::CorrectedDecayNumber(ScheduledNumber&& number) : DecayNumber(std::move(number)) {
  if (follower() != nullptr)
    throw error(fmt::format("'{}' cannot follow {}: the correction of bias needs its values in all "
                            "earlier steps",
                            option(), schedule()),
                "Use a schedule of the step, or a number.");
}

MeanDecay::MeanDecay(const ScheduledNumber& number, std::vector<double>& numbers)
    : number_(&number), corrected_(true), first_(numbers.size()) {
  if (has_numbers()) numbers.insert(numbers.end(), {1, 0, 0});
}

float MeanDecay::at(std::int64_t step) const {
  return std::clamp(static_cast<float>(number_->at(step)), 0.0F, 0x1.fffffep-1F);
}

void MeanDecay::count(std::int64_t step, UpdateClass& of) const {
  if (!has_numbers()) return;
  double &past = of.numbers[first_], &present = of.numbers[first_ + 1], &row = of.numbers[first_ + 2];
  const auto now = static_cast<double>(at(step));
  if (row > 0 && now != present) {
    past *= std::pow(present, row);
    row = 0;
  }
  present = now;
  ++row;
}

double MeanDecay::product(const UpdateClass& of) const {
  if (!has_numbers()) return std::pow(static_cast<double>(at(0)), static_cast<double>(of.updates));
  return of.numbers[first_] * std::pow(of.numbers[first_ + 1], of.numbers[first_ + 2]);
}

std::string MeanDecay::product_text() const {
  return number_->schedule().empty() ? fmt::format("{}^t", text()) : fmt::format("({0}_1 ... {0}_t)", text());
}

}  // namespace lockstep
