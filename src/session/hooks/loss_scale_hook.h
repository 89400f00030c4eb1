// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Moves a dynamic loss scale: halved where the step's gradients are not finite, whose update is left out;
// doubled after so many steps on end with finite ones. Both numbers are kept in checkpoints.
#pragma once

#include "optim/loss_scale.h"
#include "session/hook.h"
#include "session/hooks/nan_guard_hook.h"

namespace lockstep {

/// The summed gradients are the same on all ranks, so is what follows from them. Gradients that are not
/// finite at a scale that cannot be lowered (1, or a fixed one) are what `on_nan` says.
class LossScaleHook : public Hook {
 public:
  LossScaleHook(const LossScale& scale, GuardAction on_nan);
  void begin(HookContext& context) override;
  void before_run(HookContext& context) override;
  Verdict before_update(HookContext& context, const StepResult& result) override;

 private:
  LossScale options_;
  GuardAction on_nan_;
  LossScaleState state_;
};

}  // namespace lockstep
