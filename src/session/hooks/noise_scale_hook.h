// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Keeps the averages of the gradient noise scale (train/noise_scale.h) in checkpoints.
#pragma once

#include "session/hook.h"
#include "session/hook_context.h"
#include "train/noise_scale.h"
#include "train/step_numbers.h"
#include "train/trainer.h"

namespace lockstep {

class NoiseScaleHook : public Hook {
 public:
  NoiseScaleHook() : Hook("noise_scale") {}
  void begin(HookContext& context) override {
    context.declare_state(*this, "averages", context.trainer().numbers().noise_scale()->state(), {});
  }
};

}  // namespace lockstep
