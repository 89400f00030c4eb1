// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/hooks/evaluation_hook.h"

#include "comm/flight_recorder.h"
#include "core/log.h"
#include "model/metrics/score_curves.h"
#include "optim/moving_average.h"
#include "session/hook_context.h"
#include "session/number_text.h"
#include "session/pr_curve_summary.h"
#include "train/step_update.h"
#include "train/trainer.h"

namespace lockstep {

void EvaluationHook::after_create_session(HookContext&) { evaluated_step_ = -1; }

void EvaluationHook::after_run(HookContext& context, const StepResult& result) {
  const bool by_epoch = result.epoch_ended && every_epochs_ > 0 && (result.epoch + 1) % every_epochs_ == 0;
  if (by_epoch || (every_steps_ > 0 && result.step % every_steps_ == 0)) evaluate(context);
}

void EvaluationHook::end(HookContext& context) {
  if (!context.interruption().any() && evaluated_step_ != context.global_step()) evaluate(context);
}

void EvaluationHook::evaluate(HookContext& context) {
  set_long_phase("evaluation");
  const MovingAverage* const average = context.trainer().update().average();
  const bool averaged = use_averages_ && average != nullptr && average->has_begun(context.global_step());
  const auto interruption = [&] { return context.interruptions().look().code(); };
  if (averaged)
    if (const double code = context.trainer().recompute_statistics(interruption); code != 0)
      return context.defer(*this, InterruptionRequest::from_code(code));
  if (averaged) context.trainer().exchange_average();
  const EvaluationResult result = evaluation_.run(interruption);
  if (averaged) context.trainer().exchange_average();
  if (result.interruption != 0) {
    context.defer(*this, InterruptionRequest::from_code(result.interruption));
    return;
  }
  const std::int64_t step = context.global_step();
  evaluated_step_ = step;
  const bool accuracy = context.parts().is_reported("accuracy") && !result.has_metric("accuracy");
  RunReports& reports = context.reports();
  std::vector<RunReports::Value> values;
  std::string parts;
  std::vector<std::string_view> without;
  const auto note = [&](std::string_view name, double value) {
    const bool lacks = result.lacks(name);
    values.push_back({name, value, !lacks});
    if (lacks) {
      // Known, and seen by nobody, since it is of no step.
      if (!context.eval_metrics().latest(name))
        context.eval_metrics().note(fmt::format("eval/{}", name), -1, value);
      without.push_back(name);
    } else {
      context.eval_metrics().note(fmt::format("eval/{}", name), step, value);
    }
    parts += fmt::format("  {} {}", name, lacks ? "none" : number_text(value));
  };
  note("loss", result.loss);
  if (accuracy) note("accuracy", result.accuracy);
  for (std::size_t i = 0; i < result.parts.size(); ++i) {
    const std::string& name = evaluation_.part_names()[i];
    if (!context.parts().is_reported(name) || result.has_metric(name)) continue;
    note(name, result.parts[i]);
  }
  std::vector<RunReports::List> lists;
  std::vector<SummaryValue> curves;
  for (const auto& [name, report, of_metric] : result.metrics) {
    if (report.value) note(name, *report.value);
    for (const MetricTable& table : report.tables) {
      if (table.name == kCurveTable && reports.has_events())
        for (SummaryValue& curve : pr_curve_summaries(name, table)) curves.push_back(std::move(curve));
      lists.push_back({fmt::format("{}/{}", name, table.name), table.values, table.columns});
      context.eval_metrics().note_table(lists.back().name, {step, table.columns, table.values});
    }
  }
  const StepResult& last = context.last_step();
  const std::int64_t epoch = last.step > 0 ? last.epoch : context.cursor().epoch;
  reports.record(RunReports::Split::eval, step, epoch + 1, values, lists);
  if (!curves.empty()) reports.summary(RunReports::Split::eval, step, std::move(curves));
  reports.request_flush();
  reports.note(fmt::format("evaluation at step {}{}:{}  ({} samples)", step,
                           averaged ? ", averaged variables" : "", parts.substr(1), result.samples));
  if (context.is_chief() && !without.empty() && !std::exchange(said_without_, true))
    log_warning(
        "the evaluation at step {} has {}. It is never the best one, and early stopping and schedules do not "
        "see it",
        step, no_result_text(without));
}

}  // namespace lockstep
