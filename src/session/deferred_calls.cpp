// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/deferred_calls.h"

#include "core/hash.h"

namespace lockstep {

namespace {

/// A name as a number that a double holds exactly.
double name_number(const std::string& hook) { return static_cast<double>(hash64(hook) >> 12); }

}  // namespace

void DeferredCalls::set(Method method, const std::string& hook, const StepResult& result) {
  const auto number = [](auto value) { return static_cast<double>(value); };
  values_ = {number(static_cast<int>(method)),
             name_number(hook),
             number(result.step),
             number(result.cursor.epoch),
             number(result.cursor.samples_consumed),
             number(result.epoch),
             number(result.epoch_ended),
             number(result.samples),
             result.loss,
             result.accuracy,
             result.learning_rate};
}

bool DeferredCalls::begin_with(const std::string& hook) const { return values_[1] == name_number(hook); }

StepResult DeferredCalls::result() const {
  const auto integer = [&](std::size_t i) { return static_cast<std::int64_t>(values_[i]); };
  return {.step = integer(2),
          .cursor = {integer(3), integer(4)},
          .epoch = integer(5),
          .epoch_ended = integer(6) != 0,
          .samples = integer(7),
          .loss = values_[8],
          .accuracy = values_[9],
          .learning_rate = values_[10]};
}

}  // namespace lockstep
