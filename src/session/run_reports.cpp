// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/run_reports.h"

#include <utility>
#include <vector>

#include "core/log.h"

namespace lockstep {

RunReports::RunReports(bool is_chief, std::string run_dir, Options options)
    : is_chief_(is_chief), run_dir_(std::move(run_dir)), options_(options) {}

void RunReports::resume_from(std::int64_t step, std::int64_t evaluated_step) {
  if (!is_chief_) return;
  close();
  if (options_.events) {
    train_events_ = std::make_unique<EventWriter>(run_dir_);
    eval_events_ = std::make_unique<EventWriter>(run_dir_ + "/eval");
    if (step > 0) {
      train_events_->restart_from(step + 1);
      eval_events_->restart_from(evaluated_step + 1);
    }
  }
  if (options_.metrics) {
    metrics_log_ = std::make_unique<MetricsLog>(run_dir_ + "/metrics.jsonl");
    metrics_log_->drop_after(step, evaluated_step);
  }
}

void RunReports::record(Split split, std::int64_t step, std::int64_t epoch, std::span<const Value> values,
                        std::span<const List> lists) {
  if (EventWriter* events = (split == Split::train ? train_events_ : eval_events_).get())
    for (const Value& value : values)
      if (value.event) events->scalar(value.name, step, value.value);
  if (!metrics_log_) return;
  std::vector<std::pair<std::string, double>> named;
  for (const Value& value : values) named.emplace_back(value.name, value.value);
  metrics_log_->append(step, epoch, split == Split::train ? "train" : "eval", named, lists);
}

void RunReports::event(std::string_view tag, std::int64_t step, double value) {
  if (train_events_) train_events_->scalar(tag, step, value);
}

void RunReports::flush() {
  if (train_events_) train_events_->flush();
  if (eval_events_) eval_events_->flush();
}

void RunReports::close() {
  train_events_.reset();
  eval_events_.reset();
  metrics_log_.reset();
}

void RunReports::note(const std::string& text) {
  if (!is_chief_) return;
  if (write_line_)
    write_line_(text);
  else
    log_info("{}", text);
}

}  // namespace lockstep
