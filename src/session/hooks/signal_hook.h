// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Turns signals (core/run_signals.h) into interruptions and requests to save. A signal to one rank is enough.
#pragma once

#include "core/timer.h"
#include "session/hook.h"

namespace lockstep {

class SignalHook : public Hook {
 public:
  SignalHook() : Hook("signals") {}
  void begin(HookContext& context) override;
  void before_run(HookContext& context) override;
  void after_run(HookContext& context, const StepResult& result) override;

 private:
  unsigned saves_seen_ = 0;
  bool saved_ = false;
  Timer since_save_;
};

}  // namespace lockstep
