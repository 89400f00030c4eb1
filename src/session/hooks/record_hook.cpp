// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/hooks/record_hook.h"

#include <filesystem>

#include "comm/flight_recorder.h"
#include "core/log.h"
#include "io/atomic_file.h"
#include "session/run_state.h"

namespace lockstep {

RecordHook::RecordHook(const ExecutorContext& context, Options options)
    : Hook("record"), context_(context), options_(std::move(options)) {}

void RecordHook::begin(MonitoredSession& session) {
  recorder_ = std::make_unique<StepRecorder>(context_, session.trainer().calls());
}

void RecordHook::after_create_session(MonitoredSession& session) {
  if (!session.is_chief()) return;
  for (const std::int64_t step : options_.steps)
    if (step <= session.global_step())
      log_warning("step {} was to be recorded, but the run goes on at step {}", step,
                  session.global_step() + 1);
}

void RecordHook::before_run(MonitoredSession& session) {
  const std::int64_t step = session.global_step() + 1;
  recording_ = options_.steps.contains(step);
  session.trainer().observe(recording_ ? recorder_.get() : nullptr);
  if (!recording_) return;
  recorder_->clear();
  variables_before_ = session.variables().hash();
  failed_ = false;
  if (session.is_chief()) write_state(session, step);
}

/// The state first, and an older record away: a record is never beside a state that is not its own.
void RecordHook::write_state(MonitoredSession& session, std::int64_t step) {
  set_long_phase("writing the state before the recorded step");
  const SessionParts& parts = session.parts();
  const std::string path = record_state_path(session.run_dir(), step);
  try {
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::filesystem::remove(record_path(session.run_dir(), step));
    std::vector<CheckpointTensor> tensors = state_tensors(parts.variables, &parts.optimizer);
    tensors.insert(tensors.end(), session.state().begin(), session.state().end());
    write_checkpoint(path,
                     run_header(session.global_step(), parts.trainer.cursor(), parts.shards, parts.seed,
                                options_.config_text),
                     tensors);
  } catch (const std::exception& error) {
    failed_ = true;
    log_warning("step {} cannot be recorded, training goes on: {}", step, error.what());
  }
  set_phase(fmt::format("step {}, recorded", step).c_str());
}

/// Another hook may end the run here, for a loss that is not finite: what is known by now is kept.
Verdict RecordHook::before_update(MonitoredSession& session, const StepResult& result) {
  if (!recording_) return Verdict::update;
  recorder_->summed(session.trainer().summed_gradients(), session.trainer().sparse_gradients());
  write_record(session, result, false);
  return Verdict::update;
}

void RecordHook::after_run(MonitoredSession& session, const StepResult& result) {
  if (!recording_) return;
  session.trainer().observe(nullptr);
  write_record(session, result, true);
}

/// All ranks.
void RecordHook::write_record(MonitoredSession& session, const StepResult& result, bool finished) {
  StepRecord record = recorder_->gather(session.control(), finished);
  if (!session.is_chief() || failed_) return;
  record.step = result.step;
  record.loss = result.loss;
  record.accuracy = result.accuracy;
  record.updated = session.variables().hash() != variables_before_;
  record.environment = options_.environment;
  const std::string path = record_path(session.run_dir(), record.step);
  try {
    write_file_atomically(path, to_json(record), ErrorKind::checkpoint);
    if (finished) session.reports().note(fmt::format("recorded step {} in {}", record.step, path));
  } catch (const std::exception& error) {
    failed_ = true;
    log_warning("step {} could not be recorded, training goes on: {}", record.step, error.what());
  }
}

void RecordHook::end(MonitoredSession& session) {
  if (!session.is_chief()) return;
  for (const std::int64_t step : options_.steps)
    if (step > session.global_step())
      log_warning("step {} was to be recorded, but the run ended at step {}", step, session.global_step());
}

}  // namespace lockstep
