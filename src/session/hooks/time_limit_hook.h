// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Stops early enough to save before the time of the job is over, by the clock of the chief.
#pragma once

#include <functional>
#include <optional>

#include "core/function_ref.h"
#include "core/timer.h"
#include "session/hook.h"
#include "session/interruption.h"
#include "session/saver.h"

namespace lockstep {

/// When the job ends, in seconds since 1970, and the source of that time.
struct JobEnd {
  double time = 0;
  const char* source = "";
};
/// The earlier of `begin` (when the program started) plus `limit_seconds` (train.time_limit), and
/// SLURM_JOB_END_TIME.
std::optional<JobEnd> job_end(std::optional<double> limit_seconds, double begin,
                              FunctionRef<const char*(const char*)> get_env);

class TimeLimitHook : public Hook {
 public:
  struct Options {
    double end = 0;             ///< seconds since 1970
    double margin_seconds = 0;  ///< in addition to what saving and steps take
    std::function<double()> clock;
  };
  /// `saver` outlives it.
  TimeLimitHook(const Saver& saver, Options options);
  void begin(HookContext& context) override;
  void before_run(HookContext& context) override;
  void after_run(HookContext& context, const StepResult& result) override;

  /// How long before the end it stops: twice the longest save (one may be in flight), three times the longest
  /// of the recent steps, and the margin. Saves and steps as measured so far.
  double seconds_needed() const;

 private:
  const Saver& saver_;
  Options options_;
  Timer since_;
  double longest_step_ = 0;
};

}  // namespace lockstep
