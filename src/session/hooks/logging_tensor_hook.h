// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Logs numbers while training: "loss = 0.4123, conv1/kernel = mean 0.001 norm 5.3 (0.812 s)".
#pragma once

#include <string>
#include <vector>

#include "core/timer.h"
#include "session/hook.h"
#include "session/hook_timer.h"

namespace lockstep {

class LoggingTensorHook : public Hook {
 public:
  /// `tensors`: epoch, names of step metrics (loss, learning_rate), results of evaluations (eval/loss), or
  /// names of variables, of which mean and L2 norm are shown. Due at the session's first step, then by the
  /// timer; `at_end`: once more at the end.
  LoggingTensorHook(std::vector<std::string> tensors, HookTimer timer, bool at_end);
  void check(const RunNames& names) const override;
  /// Throws Error(config) for a name that there is not.
  void begin(HookContext& context) override;
  void after_run(HookContext& context, const StepResult& result) override;
  void end(HookContext& context) override;

 private:
  void log(HookContext& context);
  std::string text_of(const std::string& name, HookContext& context) const;

  std::vector<std::string> tensors_;
  HookTimer timer_;
  bool at_end_, first_ = true;
  std::int64_t logged_step_ = -1;
  Timer since_;
};

}  // namespace lockstep
