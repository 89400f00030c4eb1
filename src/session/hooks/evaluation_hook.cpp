// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/hooks/evaluation_hook.h"

#include "comm/flight_recorder.h"
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
  context.eval_metrics().note("eval/loss", step, result.loss);
  if (accuracy) context.eval_metrics().note("eval/accuracy", step, result.accuracy);
  RunReports& reports = context.reports();
  std::vector<RunReports::Value> values = {{"loss", result.loss}};
  if (accuracy) values.push_back({"accuracy", result.accuracy});
  std::string parts;
  for (std::size_t i = 0; i < result.parts.size(); ++i) {
    const std::string& name = evaluation_.part_names()[i];
    if (!context.parts().is_reported(name) || result.has_metric(name)) continue;
    values.push_back({name, result.parts[i]});
    context.eval_metrics().note("eval/" + name, step, result.parts[i]);
    parts += fmt::format("  {} {}", name, number_text(result.parts[i]));
  }
  std::vector<RunReports::List> lists;
  std::vector<SummaryValue> curves;
  for (const auto& [name, report] : result.metrics) {
    if (report.value) {
      values.push_back({name, *report.value});
      context.eval_metrics().note("eval/" + name, step, *report.value);
      parts += fmt::format("  {} {}", name, number_text(*report.value));
    }
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
  reports.note(fmt::format("evaluation at step {}{}: loss {}{}{}  ({} samples)", step,
                           averaged ? ", averaged variables" : "", number_text(result.loss),
                           accuracy ? "  accuracy " + number_text(result.accuracy) : "", parts,
                           result.samples));
}

}  // namespace lockstep
