// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// When something is due: at multiples of n steps, so that a resumed run does it at the same steps as one that
// was not interrupted, or when n seconds have passed since the last time.
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

  /// The same on all ranks. `step` counts steps that are done.
  bool due_by_step(std::int64_t step) const { return every_steps_ > 0 && step % every_steps_ == 0; }
  /// This rank's clock.
  bool due_by_clock() const { return every_seconds_ > 0 && since_.seconds() >= every_seconds_; }
  bool never() const { return every_steps_ <= 0 && every_seconds_ <= 0; }
  /// It was done: the seconds begin anew.
  void done() { since_.restart(); }

 private:
  std::int64_t every_steps_ = 0;
  double every_seconds_ = 0;
  Timer since_;
};

}  // namespace lockstep
