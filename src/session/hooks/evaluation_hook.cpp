// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/hooks/evaluation_hook.h"

#include "comm/flight_recorder.h"
#include "session/monitored_session.h"

namespace lockstep {

void EvaluationHook::after_create_session(MonitoredSession& session) {
  evaluated_step_ = -1;
  epoch_ = session.trainer().cursor().epoch;
}

void EvaluationHook::after_run(MonitoredSession& session, const StepResult& result) {
  epoch_ = result.epoch;
  const bool by_epoch = result.epoch_ended && every_epochs_ > 0 && (result.epoch + 1) % every_epochs_ == 0;
  if (by_epoch || (every_steps_ > 0 && result.step % every_steps_ == 0)) evaluate(session);
}

void EvaluationHook::end(MonitoredSession& session) {
  if (!session.interruption().any() && evaluated_step_ != session.global_step()) evaluate(session);
}

void EvaluationHook::evaluate(MonitoredSession& session) {
  set_long_phase("evaluation");
  const EvaluationResult result = evaluation_.run([&] { return session.interruptions().look().word(); });
  if (result.word != 0) {
    session.leave_off(*this, InterruptionRequest::from_word(result.word));
    return;
  }
  const std::int64_t step = session.global_step();
  evaluated_step_ = step;
  const bool accuracy = session.parts().accuracy && !result.has_metric("accuracy");
  session.metrics().note("eval/loss", step, result.loss);
  if (accuracy) session.metrics().note("eval/accuracy", step, result.accuracy);
  RunReports& reports = session.reports();
  std::vector<RunReports::Value> values = {{"loss", result.loss}};
  if (accuracy) values.push_back({"accuracy", result.accuracy});
  std::string parts;
  for (std::size_t i = 0; i < result.parts.size(); ++i) {
    const std::string& name = evaluation_.part_names()[i];
    if (!session.parts().reports_part(name) || result.has_metric(name)) continue;
    values.push_back({name, result.parts[i]});
    session.metrics().note("eval/" + name, step, result.parts[i]);
    parts += is_accuracy(name) ? fmt::format("  {} {:.2f} %", name, 100 * result.parts[i])
                               : fmt::format("  {} {:.4f}", name, result.parts[i]);
  }
  std::vector<RunReports::List> lists;
  for (const auto& [name, report] : result.metrics) {
    if (report.value) {
      values.push_back({name, *report.value});
      session.metrics().note("eval/" + name, step, *report.value);
      parts += fmt::format("  {} {:.4f}", name, *report.value);
    }
    for (const MetricTable& table : report.tables)
      lists.push_back({fmt::format("{}/{}", name, table.name), table.values, table.columns});
  }
  reports.record(RunReports::Split::eval, step, epoch_ + 1, values, lists);
  reports.flush();
  reports.note(fmt::format("evaluation at step {}: loss {:.4f}{}{}  ({} samples)", step, result.loss,
                           accuracy ? fmt::format("  accuracy {:.2f} %", 100 * result.accuracy) : "", parts,
                           result.samples));
}

}  // namespace lockstep
