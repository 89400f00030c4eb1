// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/hooks/record_hook.h"

#include <filesystem>

#include "comm/flight_recorder.h"
#include "core/log.h"
#include "core/message_lines.h"
#include "core/run_file.h"
#include "io/atomic_file.h"
#include "session/run_state.h"
#include "train/step_sums.h"
#include "train/trainer.h"

namespace lockstep {

RecordHook::RecordHook(const ExecutorContext& context, Options options)
    : Hook("record"), context_(context), options_(std::move(options)) {}

void RecordHook::begin(HookContext& context) {
  recorder_ = std::make_unique<StepRecorder>(context_, context.trainer().executor().calls());
}

void RecordHook::after_create_session(HookContext& context) {
  if (!context.is_chief()) return;
  for (const std::int64_t step : options_.steps)
    if (step <= context.global_step())
      log_warning("step {} was to be recorded, but the run goes on at step {}", step,
                  context.global_step() + 1);
}

void RecordHook::before_run(HookContext& context) {
  const std::int64_t step = context.global_step() + 1;
  recording_ = options_.steps.contains(step);
  if (!recording_) return context.trainer().remove_observer(*recorder_);
  context.trainer().add_observer(*recorder_);
  recorder_->clear();
  variables_before_ = context.variables().hash();
  failed_ = false;
  if (options_.distributed != nullptr)
    options_.distributed->stream([&] { write_state(context, step); });
  else if (context.is_chief())
    write_state(context, step);
}

/// Removes an older record and writes the state, so that no record lies next to the state of another step.
void RecordHook::write_state(HookContext& context, std::int64_t step) {
  set_long_phase("writing the state before the recorded step");
  const SessionParts& parts = context.parts();
  const std::string path = record_state_path(context.run_dir(), step);
  try {
    make_run_folder(context.run_dir(), "records", ErrorKind::checkpoint);
    std::filesystem::remove(record_path(context.run_dir(), step));
    std::vector<CheckpointTensor> tensors =
        state_tensors(parts.variables, &parts.optimizer, false, nullptr, options_.distributed);
    tensors.insert(tensors.end(), context.state().begin(), context.state().end());
    write_checkpoint(path,
                     run_header(context.global_step(), parts.trainer.cursor(), parts.shards, parts.seed,
                                options_.config_text, {}, nullptr,
                                settings_of_state(parts.clock, parts.variables, &parts.optimizer, nullptr,
                                                  context.state_pieces())),
                     tensors);
  } catch (const std::exception& error) {
    failed_ = true;
    log_warning("step {} cannot be recorded, training goes on: {}", step, message_of(error));
  }
  set_phase(fmt::format("step {}, recorded", step).c_str());
}

/// Writes what is known so far, because another hook may end the run here (a loss that is not finite).
Verdict RecordHook::before_update(HookContext& context, const StepResult& result) {
  if (!recording_) return Verdict::update;
  recorder_->summed(context.trainer().sums().gradients(), context.trainer().sums().sparse());
  write_record(context, result, false);
  return Verdict::update;
}

void RecordHook::after_run(HookContext& context, const StepResult& result) {
  if (!recording_) return;
  context.trainer().remove_observer(*recorder_);
  write_record(context, result, true);
}

/// All ranks.
void RecordHook::write_record(HookContext& context, const StepResult& result, bool finished) {
  StepRecord record = recorder_->gather(context.control(), finished);
  if (!context.is_chief() || failed_) return;
  record.step = result.step;
  record.loss = result.loss;
  record.accuracy = result.accuracy;
  record.updated = context.variables().hash() != variables_before_;
  record.environment = options_.environment;
  const std::string path = record_path(context.run_dir(), record.step);
  try {
    write_file_atomically(path, to_json(record), ErrorKind::checkpoint);
    if (finished) context.reports().note(fmt::format("recorded step {} in {}", record.step, path));
  } catch (const std::exception& error) {
    failed_ = true;
    log_warning("step {} could not be recorded, training goes on: {}", record.step, message_of(error));
  }
}

void RecordHook::end(HookContext& context) {
  if (!context.is_chief()) return;
  for (const std::int64_t step : options_.steps)
    if (step > context.global_step())
      log_warning("step {} was to be recorded, but the run ended at step {}", step, context.global_step());
}

}  // namespace lockstep
