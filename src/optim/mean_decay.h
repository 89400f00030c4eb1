// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What a rule keeps of a moving mean in each step, such as beta1 of Adam: a number or a schedule in [0, 1),
// used as float32. It also gives the correction of bias of a mean that begins with 0.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "optim/scheduled_number.h"
#include "optim/update_counts.h"

namespace lockstep {

/// The option of a decay, with the range kShareRange. A member of a struct of options.
class DecayNumber : public ScheduledNumber {
 public:
  DecayNumber() = default;
  /// Throws Error(config) with position for a plain number that is 1 when rounded.
  explicit DecayNumber(ScheduledNumber&& number);
};
/// That of a decay whose mean is corrected.
class CorrectedDecayNumber : public DecayNumber {
 public:
  CorrectedDecayNumber() = default;
  /// Throws Error(config) also for a schedule that follows a metric: its values in earlier steps cannot be
  /// computed again.
  explicit CorrectedDecayNumber(ScheduledNumber&& number);
};
template <std::derived_from<DecayNumber> Number>
void set_member(Number& member, const Params& params, const ParamSpec& option) {
  ScheduledNumber number;
  set_member(number, params, option);
  member = Number(std::move(number));
}

class MeanDecay {
 public:
  /// A decay without a correction. `number`, which outlives this, has been a DecayNumber.
  explicit MeanDecay(const ScheduledNumber& number) : number_(&number) {}
  /// With a correction; `number` has been a CorrectedDecayNumber. Adds the numbers that product() needs to
  /// UpdateClass::numbers, whose initial values are `numbers`.
  MeanDecay(const ScheduledNumber& number, std::vector<double>& numbers);

  /// The decay in the update after which the global step is `step` + 1; at most the largest float32 below 1.
  float at(std::int64_t step) const;
  /// The update in step `step` of variables of a class: called once, before product().
  void count(std::int64_t step, UpdateClass& of) const;
  /// d_1 ... d_t, the product over the updates of a class, the present one included. The mean
  /// m = d m + (1 - d) g from m = 0 has weights with the sum 1 - d_1 ... d_t. Updates in a row with the same
  /// d enter as the power d^n, so a number and a constant schedule have the same bits.
  double product(const UpdateClass& of) const;
  /// Whether product() needs the values of earlier steps.
  bool has_numbers() const { return corrected_ && !number_->schedule().empty(); }

  /// The number, or the option's name if it follows a schedule.
  std::string text() const { return number_->text(); }
  /// d^t, or the product of the schedule's values in words.
  std::string product_text() const;

 private:
  const ScheduledNumber* number_;
  bool corrected_ = false;
  std::size_t first_ = 0;  ///< of its numbers: the product before the present row, d of the row, its length
};

}  // namespace lockstep
