// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A loss that is NaN or infinite, and a loss that jumps: seen before the variables move.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "driver/hook.h"

namespace lockstep {

/// What to do: end with an error (exit code 1), stop in order, leave out this step's update, or only say it.
enum class GuardAction { error, stop, skip, warn };
/// From "error|stop|skip|warn".
GuardAction guard_action(std::string_view name);
/// Does that because of `what`; all ranks alike.
Verdict guard(MonitoredSession& session, GuardAction action, const std::string& what, const char* advice);

/// Judges the loss of the whole batch, which is the same on all ranks. With `warn` the update takes place.
class NanGuardHook : public Hook {
 public:
  explicit NanGuardHook(GuardAction action) : Hook("nan_guard"), action_(action) {}
  Verdict before_update(MonitoredSession& session, const StepResult& result) override;

 private:
  GuardAction action_;
};

/// A spike: a loss above `factor` times the median of the last `window` losses that were none. Judged once
/// there are `window` of them; they are kept in checkpoints.
class LossSpikeHook : public Hook {
 public:
  LossSpikeHook(double factor, std::int64_t window, GuardAction action);
  void begin(MonitoredSession& session) override;
  Verdict before_update(MonitoredSession& session, const StepResult& result) override;

 private:
  double factor_;
  GuardAction action_;
  std::vector<double> losses_, sorted_;
  double seen_ = 0;  ///< losses so far; the next one goes to losses_[seen_ % window]
};

}  // namespace lockstep
