// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/hooks/loss_scale_hook.h"

#include <cmath>

#include "core/log.h"
#include "session/hook_context.h"
#include "train/trainer.h"

namespace lockstep {

LossScaleHook::LossScaleHook(const LossScale& scale, GuardAction on_nan)
    : Hook("loss_scale"), options_(scale), on_nan_(on_nan), state_{.scale = scale.initial} {}

void LossScaleHook::begin(HookContext& context) {
  if (!options_.dynamic) return;
  context.declare_state(*this, "scale", {&state_.scale, 1}, {});
  context.declare_state(*this, "good_steps", {&state_.good_steps, 1}, {});
}

void LossScaleHook::before_run(HookContext& context) { context.trainer().set_loss_scale(state_.scale); }

Verdict LossScaleHook::before_update(HookContext& context, const StepResult& result) {
  if (result.finite_gradients) {
    if (options_.dynamic) state_.finite(options_);
    return Verdict::update;
  }
  if (!std::isfinite(result.loss)) {  // the NaN guard has decided
    state_.good_steps = 0;
    return Verdict::update;
  }
  if (!options_.dynamic || !state_.overflowed())
    return guard(
        context, on_nan_,
        {.step = result.step,
         .what = fmt::format("the gradients of step {} are not finite, at a loss scale of {}: training has "
                             "diverged",
                             result.step, state_.scale),
         .advice = fmt::format("The variables were not updated with them; {}. Try a smaller learning rate, "
                               "precision.loss_scale: dynamic, or precision.compute: bfloat16.",
                               context.checkpoint_text())});
  if (context.is_chief())
    log_info("step {}: gradients overflowed; its update is skipped, the loss scale is {} now", result.step,
             state_.scale);
  return Verdict::skip;
}

}  // namespace lockstep
