// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Logs numbers while training: "loss = 0.4123, conv1/kernel = mean 0.001 norm 5.3 (0.812 s)".
#pragma once

#include <string>
#include <vector>

#include "core/timer.h"
#include "session/hook.h"
#include "session/hooks/hook_timer.h"

namespace lockstep {

class LoggingTensorHook : public Hook {
 public:
  /// `tensors`: loss, accuracy, learning_rate, epoch, or variables, of which mean and L2 norm are shown. Due
  /// at the session's first step, then by the timer; `at_end`: once more at the end.
  LoggingTensorHook(std::vector<std::string> tensors, HookTimer timer, bool at_end);
  void begin(HookContext& context) override;
  void after_run(HookContext& context, const StepResult& result) override;
  void end(HookContext& context) override;

 private:
  void log(HookContext& context);

  std::vector<std::string> tensors_;
  HookTimer timer_;
  bool at_end_, first_ = true;
  StepResult last_;
  std::int64_t logged_step_ = -1;
  Timer since_;
};

}  // namespace lockstep
