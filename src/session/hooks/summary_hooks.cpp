// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/hooks/summary_hooks.h"

#include <vector>

#include "session/hook_context.h"

namespace lockstep {

void SummarySaverHook::after_create_session(HookContext& context) {
  const std::int64_t step = context.global_step();
  context.reports().resume_from(step, context.has_deferred() ? step - 1 : step);
  since_.restart();
  samples_ = 0;
}

void SummarySaverHook::after_run(HookContext& context, const StepResult& result) {
  samples_ += result.samples;
  const bool due = timer_.due_by_step(result.step);
  if (!due && !(context.is_chief() && timer_.due_by_clock())) return;
  const std::optional<ClipTotals> totals = context.trainer().clip_totals();
  if (!context.is_chief()) return;
  timer_.done();
  std::vector<RunReports::Value> values = {{"loss", result.loss}};
  if (context.parts().accuracy) values.push_back({"accuracy", result.accuracy});
  const std::span<const std::string> names = context.trainer().part_names();
  for (std::size_t i = 0; i < result.parts.size(); ++i)
    if (context.parts().reports_part(names[i])) values.push_back({names[i], result.parts[i]});
  values.push_back({"learning_rate", result.learning_rate});
  if (context.trainer().scales_loss()) values.push_back({"loss_scale", result.loss_scale});
  if (totals) values.push_back({"gradient_norm", totals->norm});
  if (totals && context.trainer().gradient_clip()->rule().clips_norm())
    values.push_back({"clipped", totals->clipped});
  values.push_back({"samples_per_second", static_cast<double>(samples_) / since_.seconds(), false});
  context.reports().record(RunReports::Split::train, result.step, result.epoch + 1, values);
  since_.restart();
  samples_ = 0;
}

void SummarySaverHook::end(HookContext& context) { context.reports().flush(); }

void StepCounterHook::after_create_session(HookContext&) {
  since_.restart();
  timer_.done();
  steps_ = samples_ = 0;
}

void StepCounterHook::after_run(HookContext& context, const StepResult& result) {
  ++steps_;
  samples_ += result.samples;
  if (!timer_.due_by_step(result.step) && !timer_.due_by_clock()) return;
  timer_.done();
  const double seconds = since_.seconds();
  context.reports().event("global_step/sec", result.step, static_cast<double>(steps_) / seconds);
  context.reports().event("samples/sec", result.step, static_cast<double>(samples_) / seconds);
  since_.restart();
  steps_ = samples_ = 0;
}

}  // namespace lockstep
