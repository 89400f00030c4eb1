// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What a rule keeps of a moving mean in each step, such as beta1 of Adam: a number or a schedule in [0, 1),
// used as float32. It also gives the correction of bias of a mean that begins with 0. One thread.
#pragma once

#include <cstdint>
#include <string>

#include "optim/scheduled_number.h"

namespace lockstep {

enum class BiasCorrection { none, by_product };

class MeanDecay {
 public:
  /// `number` outlives this. Throws Error(config) with position for a plain number that is 1 when rounded.
  /// With a correction also for a schedule that follows a metric, because a resumed run could not compute its
  /// product again.
  MeanDecay(const ScheduledNumber& number, BiasCorrection correction);

  /// The decay in the update after which the global step is `step` + 1; at most the largest float32 below 1.
  float at(std::int64_t step) const;
  /// d_1 ... d_t, the product over the updates up to t = `step` + 1. The mean m = d m + (1 - d) g from m = 0
  /// has weights with the sum 1 - d_1 ... d_t. Updates in a row with the same d enter as the power d^n, so a
  /// number and a constant schedule have the same bits. A function of the step alone: it is computed from the
  /// first step on when steps do not follow each other.
  double product(std::int64_t step);

  /// The number, or the option's name if it follows a schedule.
  std::string text() const { return number_->text(); }
  /// d^t, or the product of the schedule's values in words.
  std::string product_text() const;

 private:
  const ScheduledNumber* number_;
  double past_ = 1;           ///< the product before the present row
  float present_ = 0;         ///< d of the present row
  std::int64_t row_ = 0;      ///< its length
  std::int64_t counted_ = 0;  ///< updates in past_ and row_
};

}  // namespace lockstep
