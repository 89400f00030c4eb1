// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/run_reports.h"

#include "core/log.h"

namespace lockstep {

RunReports::RunReports(bool is_chief, const Config& config, const std::string& run_dir,
                       std::int64_t first_step, bool accuracy, bool quiet)
    : is_chief_(is_chief),
      accuracy_(accuracy),
      quiet_(quiet),
      every_steps_(config.summary.integer("every_steps")) {
  if (!is_chief_) return;
  if (config.summary.boolean("events")) {
    train_events_ = std::make_unique<EventWriter>(run_dir);
    if (first_step > 0) train_events_->restart_from(first_step + 1);
    eval_events_ = std::make_unique<EventWriter>(run_dir + "/eval");
    if (first_step > 0) eval_events_->restart_from(first_step + 1);
  }
  if (config.summary.boolean("metrics")) {
    metrics_ = std::make_unique<MetricsLog>(run_dir + "/metrics.jsonl");
    metrics_->drop_after(first_step);
  }
}

void RunReports::begin(const ProgressSample& start) {
  since_summary_.restart();
  if (!is_chief_ || quiet_) return;
  progress_ = std::make_unique<Progress>(
      Progress::Options{.terminal = Progress::is_terminal(stderr),
                        .write_line = [](std::string_view text) { log_info("{}", text); }},
      start);
}

void RunReports::step(const StepResult& result, const ProgressSample& sample) {
  if (!is_chief_) return;
  samples_since_ += result.samples;
  ++steps_since_;
  if (progress_) progress_->update(sample);
  if (result.step % every_steps_ != 0) return;
  const double seconds = since_summary_.seconds();
  const double steps_per_second = static_cast<double>(steps_since_) / seconds,
               samples_per_second = static_cast<double>(samples_since_) / seconds;
  if (train_events_) {
    train_events_->scalar("loss", result.step, result.loss);
    if (accuracy_) train_events_->scalar("accuracy", result.step, result.accuracy);
    train_events_->scalar("learning_rate", result.step, result.learning_rate);
    train_events_->scalar("global_step/sec", result.step, steps_per_second);
    train_events_->scalar("samples/sec", result.step, samples_per_second);
  }
  if (metrics_) {
    std::vector<std::pair<std::string, double>> values = {{"loss", result.loss}};
    if (accuracy_) values.emplace_back("accuracy", result.accuracy);
    values.emplace_back("learning_rate", result.learning_rate);
    values.emplace_back("samples_per_second", samples_per_second);
    metrics_->append(result.step, result.epoch + 1, "train", values);
  }
  since_summary_.restart();
  samples_since_ = steps_since_ = 0;
}

void RunReports::evaluated(const StepResult& at, const EvaluationResult& result) {
  if (!is_chief_) return;
  std::vector<std::pair<std::string, double>> values = {{"loss", result.loss}};
  if (accuracy_) values.emplace_back("accuracy", result.accuracy);
  if (eval_events_) {
    for (const auto& [name, value] : values) eval_events_->scalar(name, at.step, value);
    eval_events_->flush();
    train_events_->flush();
  }
  if (metrics_) metrics_->append(at.step, at.epoch + 1, "eval", values);
  note(accuracy_ ? fmt::format("evaluation at step {}: loss {:.4f}  accuracy {:.2f} %  ({} samples)", at.step,
                               result.loss, 100 * result.accuracy, result.samples)
                 : fmt::format("evaluation at step {}: loss {:.4f}  ({} samples)", at.step, result.loss,
                               result.samples));
}

void RunReports::note(const std::string& text) {
  if (!is_chief_) return;
  if (progress_)
    progress_->line(text);
  else
    log_info("{}", text);
}

void RunReports::finish(const ProgressSample& sample) {
  if (progress_) progress_->finish(sample);
  if (train_events_) train_events_->close();
  if (eval_events_) eval_events_->close();
}

}  // namespace lockstep
