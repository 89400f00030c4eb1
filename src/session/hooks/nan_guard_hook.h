// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Guards against a loss or gradients that are NaN or infinite, and against a loss that jumps. They act before
// the variables are updated.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "session/guard_action.h"
#include "session/hook.h"
#include "train/bad_step_finder.h"
#include "train/step_metrics.h"

namespace lockstep {

struct StepState;

/// What is wrong with a step.
struct BadStep {
  std::int64_t step;  ///< as StepResult::step; it may have updated variables already
  std::string what, advice;
  BadNumbers numbers = BadNumbers::not_finite;
};
/// Acts on it: ends with an error (exit code 1), stops, skips the update of the step, goes back, or logs a
/// warning; names the microshards at fault, but not in a warning. All ranks alike.
Verdict guard(HookContext& context, GuardAction action, const BadStep& bad);

/// Checks the loss of the whole batch, the moving statistics after the step, and the gradients, all of which
/// are the same on all ranks. With `warn` the update takes place. On a GPU, and with servers, what is known
/// of statistics and gradients may be that of an earlier step (StepState); then the actions that prevent the
/// update wait for them.
class NanGuardHook : public Hook {
 public:
  explicit NanGuardHook(GuardAction action) : Hook("nan_guard"), action_(action) {}
  void begin(HookContext& context) override;
  Verdict before_update(HookContext& context, const StepResult& result) override;
  bool decides_update() const override { return prevents_update(action_); }
  void end(HookContext& context) override;

 private:
  Verdict look_at_numbers(HookContext& context, const StepResult& result, const StepState& state);

  GuardAction action_;
};

/// After a step, before its variables are saved: throws the error of numbers of that step that nobody has
/// waited for (StepState), on all ranks. Waits for a device. All ranks.
void require_good_step(HookContext& context);

/// Checks the norm of the gradients, where it is measured: a norm that is not finite makes all of them NaN
/// where they are clipped. The norm is the same on all ranks. On a GPU the host has to wait for it. It does
/// so in each step for the actions that prevent the update (stop, skip, rollback); with the others the next
/// loss is NaN.
class GradientGuardHook : public Hook {
 public:
  explicit GradientGuardHook(GuardAction action) : Hook("gradient_guard"), action_(action) {}
  void begin(HookContext& context) override;
  Verdict before_update(HookContext& context, const StepResult& result) override;
  bool decides_update() const override { return prevents_update(action_); }

 private:
  GuardAction action_;
  StepMetrics::Id norm_ = StepMetrics::kNone;
};

/// A spike is a loss above `factor` times the median of the last `window` losses that were no spikes. Losses
/// are checked once there are `window` of them; checkpoints keep them.
class LossSpikeHook : public Hook {
 public:
  LossSpikeHook(double factor, std::int64_t window, GuardAction action);
  void begin(HookContext& context) override;
  Verdict before_update(HookContext& context, const StepResult& result) override;
  bool decides_update() const override { return prevents_update(action_); }

 private:
  double factor_;
  GuardAction action_;
  std::vector<double> losses_, sorted_;
  double seen_ = 0;  ///< losses so far; the next one is stored in losses_[seen_ % window]
};

}  // namespace lockstep
