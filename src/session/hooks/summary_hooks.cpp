// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/hooks/summary_hooks.h"

#include <string>
#include <vector>

#include "io/event_trim.h"
#include "io/metrics_trim.h"
#include "session/hook_context.h"

namespace lockstep {

namespace {
constexpr const char* kRate = "samples_per_second";  // in each record, and in no others
}  // namespace

void SummarySaverHook::after_create_session(HookContext& context) {
  const std::int64_t step = context.global_step();
  if (context.is_chief() && !context.begins_again() && !timer_.due_by_step(step)) drop_last_record(context);
  context.reports().resume_from(step, context.has_deferred() ? step - 1 : step);
  recorded_step_ = -1;
  since_.restart();
  samples_ = 0;
}

void SummarySaverHook::after_run(HookContext& context, const StepResult& result) {
  samples_ += result.samples;
  const bool due = timer_.due_by_step(result.step);
  if (due || (context.is_chief() && timer_.due_by_clock())) record(context, result);
}

/// An uninterrupted run has no record of what was the last step of an earlier job.
void SummarySaverHook::drop_last_record(HookContext& context) const {
  std::vector<std::string> names;
  for (const StepMetrics::Metric& metric : context.step_metrics().metrics())
    if (metric.use == StepMetrics::Use::summary) names.push_back(metric.name);
  drop_events_after(context.run_dir(), context.global_step(), names);
  drop_train_record(context.run_dir() + "/metrics.jsonl", context.global_step(), kRate);
}

/// Of any rank: all read the metrics in steps that are due, and in the last one.
void SummarySaverHook::record(HookContext& context, const StepResult& result) {
  recorded_step_ = result.step;
  std::vector<RunReports::Value> values;
  const StepMetrics& metrics = context.step_metrics();
  for (StepMetrics::Id id = 0; id < metrics.size(); ++id) {
    const StepMetrics::Metric& metric = metrics.metrics()[static_cast<std::size_t>(id)];
    if (metric.use != StepMetrics::Use::summary || !context.parts().is_reported(metric.name)) continue;
    if (const std::optional<double> value = metrics.value(id)) values.push_back({metric.name, *value});
  }
  if (!context.is_chief()) return;
  timer_.done();
  for (const HookContext::SummaryProducer& producer : context.summaries()) producer(values);
  values.push_back({kRate, static_cast<double>(samples_) / since_.seconds(), false});
  context.reports().record(RunReports::Split::train, result.step, result.epoch + 1, values);
  since_.restart();
  samples_ = 0;
}

void SummarySaverHook::end(HookContext& context) {
  const StepResult& last = context.last_step();
  // A step that is due has its record, maybe from an earlier job, whose end was interrupted.
  const bool is_new = !timer_.due_by_step(last.step) && recorded_step_ != last.step;
  if (!timer_.never() && !context.interruption().any() && last.step > 0 && is_new) record(context, last);
  context.reports().session_log(SessionStatus::stop, context.global_step());
  context.reports().request_flush();
}

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
