// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Says when something is due: at multiples of n steps, or n seconds after the last time. Multiples of steps
// are the same in a resumed run and in one that was not interrupted.
#pragma once

#include <cstdint>
#include <optional>

#include "core/timer.h"

namespace lockstep {

class HookTimer {
 public:
  HookTimer() = default;
  HookTimer(std::optional<std::int64_t> every_steps, std::optional<double> every_seconds)
      : every_steps_(every_steps.value_or(0)), every_seconds_(every_seconds.value_or(0)) {}

  /// Whether it is due by the step, the same on all ranks. `step`: steps done.
  bool due_by_step(std::int64_t step) const { return every_steps_ > 0 && step % every_steps_ == 0; }
  /// The same, and at the first step of the run, so that a short run has it, too.
  bool due_from_the_first(std::int64_t step) const { return step == 1 || due_by_step(step); }
  /// Whether it is due by the clock of this rank.
  bool due_by_clock() const { return every_seconds_ > 0 && since_.seconds() >= every_seconds_; }
  bool never() const { return every_steps_ <= 0 && every_seconds_ <= 0; }
  /// It was done: the seconds count from now.
  void done() { since_.restart(); }

 private:
  std::int64_t every_steps_ = 0;
  double every_seconds_ = 0;
  Timer since_;
};

}  // namespace lockstep
