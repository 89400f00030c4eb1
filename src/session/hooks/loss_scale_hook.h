// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Adapts a dynamic loss scale. Gradients that are not finite halve it and skip the update; N consecutive
// steps with finite gradients double it. Checkpoints keep the scale and the number of those steps.
#pragma once

#include "optim/loss_scale.h"
#include "session/hook.h"
#include "session/hooks/nan_guard_hook.h"

namespace lockstep {

/// The decision depends on the summed gradients alone, so it is the same on all ranks. If gradients are not
/// finite and the scale cannot be lowered (it is 1, or fixed), `on_nan` decides.
class LossScaleHook : public Hook {
 public:
  LossScaleHook(const LossScale& scale, GuardAction on_nan);
  void begin(HookContext& context) override;
  void before_run(HookContext& context) override;
  Verdict before_update(HookContext& context, const StepResult& result) override;
  bool decides_update() const override { return true; }

 private:
  LossScale options_;
  GuardAction on_nan_;
  LossScaleState state_;
};

}  // namespace lockstep
