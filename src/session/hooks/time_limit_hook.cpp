// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/hooks/time_limit_hook.h"

#include <algorithm>

#include "core/log.h"
#include "core/scalar.h"
#include "session/hook_context.h"

namespace lockstep {

namespace {
/// The longest step shrinks by this factor in each step, so that the slow first one is forgotten.
constexpr double kForget = 0.99;
}  // namespace

std::optional<JobEnd> job_end(std::optional<double> limit_seconds, double begin,
                              FunctionRef<const char*(const char*)> get_env) {
  std::optional<JobEnd> end;
  if (limit_seconds) end = JobEnd{begin + *limit_seconds, "train.time_limit"};
  const char* text = get_env("SLURM_JOB_END_TIME");
  if (text == nullptr) return end;
  const std::optional<double> slurm = parse_real(text);
  if (!slurm) {
    log_warning("the environment variable SLURM_JOB_END_TIME is '{}', which is no time: it is ignored", text);
    return end;
  }
  if (*slurm < begin) {
    log_warning(
        "the environment variable SLURM_JOB_END_TIME is {:.0f} s in the past, from another job: it is "
        "ignored",
        begin - *slurm);
    return end;
  }
  if (!end || *slurm < end->time) end = JobEnd{*slurm, "SLURM_JOB_END_TIME"};
  return end;
}

TimeLimitHook::TimeLimitHook(const Saver& saver, Options options)
    : Hook("time_limit", HookScope::chief_only), saver_(saver), options_(std::move(options)) {}

void TimeLimitHook::begin(HookContext& context) {
  context.interruptions().add([this]() -> InterruptionRequest {
    if (options_.clock() + seconds_needed() < options_.end) return {};
    return {Interruption::requeue, static_cast<int>(InterruptionReason::time_limit)};
  });
}

void TimeLimitHook::before_run(HookContext&) { since_.restart(); }

void TimeLimitHook::after_run(HookContext&, const StepResult&) {
  longest_step_ = std::max(longest_step_ * kForget, since_.seconds());
}

double TimeLimitHook::seconds_needed() const {
  return 2 * saver_.longest_save_seconds() + 3 * longest_step_ + options_.margin_seconds;
}

}  // namespace lockstep
