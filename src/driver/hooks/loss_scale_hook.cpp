// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/hooks/loss_scale_hook.h"

#include <algorithm>
#include <cmath>

#include "core/log.h"
#include "driver/monitored_session.h"

namespace lockstep {

LossScaleHook::LossScaleHook(const LossScale& scale, GuardAction on_nan)
    : Hook("loss_scale"), options_(scale), on_nan_(on_nan), scale_(scale.initial) {}

void LossScaleHook::begin(MonitoredSession& session) {
  if (!options_.dynamic) return;
  session.declare_state(*this, "scale", {&scale_, 1});
  session.declare_state(*this, "good_steps", {&good_steps_, 1});
}

void LossScaleHook::before_run(MonitoredSession& session) { session.trainer().set_loss_scale(scale_); }

Verdict LossScaleHook::before_update(MonitoredSession& session, const StepResult& result) {
  if (result.finite_gradients) {
    good_steps_ += 1;
    if (options_.dynamic && good_steps_ >= static_cast<double>(options_.growth_steps)) {
      scale_ = std::min(2 * scale_, LossScale::kMost);
      good_steps_ = 0;
    }
    return Verdict::update;
  }
  good_steps_ = 0;
  if (!std::isfinite(result.loss)) return Verdict::update;  // the NaN guard has said what becomes of it
  if (!options_.dynamic || scale_ <= 1)
    return guard(session, on_nan_,
                 fmt::format("the gradients of step {} are not finite, at a loss scale of {}: training has "
                             "diverged",
                             result.step, scale_),
                 "The variables were not updated with them, and the last checkpoint is intact. Try a smaller "
                 "learning rate, precision.loss_scale: dynamic, or precision.compute: bfloat16.");
  scale_ /= 2;
  if (session.is_chief())
    log_info("step {}: gradients overflowed; its update is left out, the loss scale is {} now", result.step,
             scale_);
  return Verdict::skip;
}

}  // namespace lockstep
