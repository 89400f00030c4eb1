// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A loss that is NaN or infinite, gradients that are, and a loss that jumps: seen before the variables move.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "session/guard_action.h"
#include "session/hook.h"

namespace lockstep {

/// Does `action` because of `what`: ends with an error (exit code 1), stops in order, leaves out the step's
/// update, or only logs it. All ranks alike.
Verdict guard(HookContext& context, GuardAction action, const std::string& what, const char* advice);

/// Judges the loss of the whole batch, which is the same on all ranks. With `warn` the update takes place.
class NanGuardHook : public Hook {
 public:
  explicit NanGuardHook(GuardAction action) : Hook("nan_guard"), action_(action) {}
  Verdict before_update(HookContext& context, const StepResult& result) override;

 private:
  GuardAction action_;
};

/// Judges the norm of the gradients, which is the same on all ranks, where they are clipped by norms: one
/// that is not finite makes them NaN everywhere. On a GPU the host would have to wait for the norm in each
/// step. It does so where not to update is the point (stop, skip); else it is the next loss that is NaN.
class GradientGuardHook : public Hook {
 public:
  explicit GradientGuardHook(GuardAction action) : Hook("gradient_guard"), action_(action) {}
  void begin(HookContext& context) override;
  Verdict before_update(HookContext& context, const StepResult& result) override;

 private:
  GuardAction action_;
  StepMetrics::Id norm_ = StepMetrics::kNone;
};

/// A spike: a loss above `factor` times the median of the last `window` losses that were none. Judged once
/// there are `window` of them; they are kept in checkpoints.
class LossSpikeHook : public Hook {
 public:
  LossSpikeHook(double factor, std::int64_t window, GuardAction action);
  void begin(HookContext& context) override;
  Verdict before_update(HookContext& context, const StepResult& result) override;

 private:
  double factor_;
  GuardAction action_;
  std::vector<double> losses_, sorted_;
  double seen_ = 0;  ///< losses so far; the next one goes to losses_[seen_ % window]
};

}  // namespace lockstep
