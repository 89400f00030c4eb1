// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Reports the steps of the loop to the status of the job (run_status.h).
#pragma once

#include "session/hook.h"
#include "session/hook_context.h"
#include "session/run_status.h"
#include "session/saver.h"

namespace lockstep {

class StatusHook : public Hook {
 public:
  /// Both belong to the chief and outlive the hook.
  StatusHook(RunStatus* status, const Saver& saver)
      : Hook("status", HookScope::chief_only), status_(status), saver_(saver) {}
  void before_run(HookContext&) override { status_->first_step_begins(); }
  void after_run(HookContext& context, const StepResult& result) override {
    status_->step_done(result.step, result.loss);
    status_->ranks_done(context.rank_times(), result.step, result.samples);
    status_->waited_for_checkpoints(saver_.blocked_seconds());
  }

 private:
  RunStatus* status_;
  const Saver& saver_;
};

}  // namespace lockstep
