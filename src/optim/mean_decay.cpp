// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "optim/mean_decay.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace lockstep {

namespace {

double power(float base, std::int64_t exponent) {
  return std::pow(static_cast<double>(base), static_cast<double>(exponent));
}

}  // namespace

MeanDecay::MeanDecay(const ScheduledNumber& number, BiasCorrection correction) : number_(&number) {
  if (number.schedule().empty() && !(static_cast<float>(number.at(0)) < 1.0F))
    throw number.error(fmt::format("'{}' is 1 when rounded to float32", number.option()));
  if (correction != BiasCorrection::none && number.follower() != nullptr)
    throw number.error(fmt::format("'{}' cannot follow {}: the correction of bias needs its values in all "
                                   "earlier steps",
                                   number.option(), number.schedule()),
                       "Use a schedule of the step, or a number.");
}

float MeanDecay::at(std::int64_t step) const {
  return std::clamp(static_cast<float>(number_->at(step)), 0.0F, 0x1.fffffep-1F);
}

double MeanDecay::product(std::int64_t step) {
  if (number_->schedule().empty()) return power(at(step), step + 1);
  if (step + 1 < counted_) past_ = 1, row_ = 0, counted_ = 0;
  for (; counted_ <= step; ++counted_) {
    const float now = at(counted_);
    if (row_ > 0 && now != present_) past_ *= power(present_, std::exchange(row_, 0));
    present_ = now;
    ++row_;
  }
  return past_ * power(present_, row_);
}

std::string MeanDecay::product_text() const {
  return number_->schedule().empty() ? fmt::format("{}^t", text()) : fmt::format("({0}_1 ... {0}_t)", text());
}

}  // namespace lockstep
