// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Waits before the first step until another run has saved a checkpoint of a step: for a run that begins with
// values that another job is still computing.
#pragma once

#include "session/hook.h"

namespace lockstep {

class WaitForStepHook : public Hook {
 public:
  /// Looks into `run_dir` every `poll_seconds` until its newest checkpoint is of `step` or later. Fails after
  /// `timeout_seconds`.
  WaitForStepHook(std::string run_dir, std::int64_t step, double poll_seconds, double timeout_seconds)
      : Hook("wait_for_step"),
        run_dir_(std::move(run_dir)),
        step_(step),
        poll_seconds_(poll_seconds),
        timeout_seconds_(timeout_seconds) {}

  bool communicates() const override { return true; }
  void after_create_session(HookContext& context) override;

 private:
  std::string run_dir_;
  std::int64_t step_;
  double poll_seconds_, timeout_seconds_;
  bool waited_ = false;
};

}  // namespace lockstep
