// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Measures each step from its begin to the end of its exchange. The limit of the watchdog is derived from it.
// The time does not include other hooks if this one is added last.
#pragma once

#include <functional>
#include <utility>

#include "core/timer.h"
#include "session/hook.h"

namespace lockstep {

class StepClockHook : public Hook {
 public:
  explicit StepClockHook(std::function<void(double seconds)> took)
      : Hook("step_clock"), took_(std::move(took)) {}
  void before_run(HookContext&) override { timer_.restart(); }
  Verdict before_update(HookContext&, const StepResult&) override {
    took_(timer_.seconds());
    return Verdict::update;
  }

 private:
  std::function<void(double)> took_;
  Timer timer_;
};

}  // namespace lockstep
