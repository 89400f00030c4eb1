// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/hooks/progress_hook.h"

#include <algorithm>
#include <cstdlib>

#include "core/log.h"
#include "core/process_environment.h"
#include "session/hook_context.h"
#include "session/terminal.h"

namespace lockstep {

ProgressHook::~ProgressHook() {
  if (reports_ != nullptr) reports_->set_line_writer({});
}

void ProgressHook::begin(HookContext& context) {
  communication_ = context.step_metrics().find("communication_seconds");
  input_ = context.step_metrics().find("input_seconds");
}

void ProgressHook::after_create_session(HookContext& context) {
  progress_ = std::make_unique<Progress>(
      Progress::Options{.width = terminal_width_of(stderr, process_environment),
                        .write_line = [](std::string_view text) { log_info("{}", text); }},
      sample(context));
  reports_ = &context.reports();
  reports_->set_line_writer([this](std::string_view text) { progress_->line(text); });
}

void ProgressHook::after_run(HookContext& context, const StepResult& result) {
  samples_ += result.samples;
  loss_ = result.loss;
  progress_->update(sample(context));
}

void ProgressHook::end(HookContext& context) { progress_->finish(sample(context)); }

ProgressSample ProgressHook::sample(HookContext& context) const {
  const StepMetrics& metrics = context.step_metrics();
  ProgressSample sample;
  sample.step = context.global_step();
  sample.total_steps = total_steps_;
  sample.epochs = epochs_;
  sample.epoch = context.cursor().epoch + 1;
  if (epochs_ > 0) sample.epoch = std::min(sample.epoch, epochs_);
  sample.loss = loss_;
  sample.samples = samples_;
  sample.communication_seconds = metrics.value(communication_).value();
  sample.input_seconds = metrics.value(input_).value();
  return sample;
}

}  // namespace lockstep
