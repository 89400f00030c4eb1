// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/hooks/checkpoint_saver_hook.h"

#include <cmath>

#include "comm/flight_recorder.h"
#include "core/log.h"
#include "core/trace.h"
#include "driver/launch.h"
#include "driver/monitored_session.h"
#include "driver/run_state.h"
#include "driver/version.h"

namespace lockstep {

namespace {

/// A checkpoint of broken variables would be what a resumed run begins with. The same on all ranks.
void check_finite(const VariableStore& variables, std::int64_t step) {
  for (const CheckpointTensor& tensor : state_tensors(variables, nullptr)) {
    const float* values = tensor.tensor.f32();
    for (std::int64_t i = 0; i < tensor.tensor.num_elements(); ++i)
      if (!std::isfinite(values[i]))
        throw SharedError(Error(
            ErrorKind::numeric,
            fmt::format(
                "after step {}, {}[{}] is {}: training has diverged, and no checkpoint is written of it",
                step, tensor.path, i, values[i]),
            "", "The checkpoints before it are intact. Try a smaller learning rate."));
  }
}

}  // namespace

CheckpointSaverHook::CheckpointSaverHook(CheckpointStore& store, Options options)
    : Hook("checkpoint_saver"), store_(store), options_(std::move(options)) {}

void CheckpointSaverHook::add_listener(std::unique_ptr<CheckpointSaverListener> listener) {
  listeners_.push_back(std::move(listener));
}

void CheckpointSaverHook::begin(MonitoredSession& session) {
  if (!session.is_chief()) return;
  for (const auto& listener : listeners_) listener->begin(session);
}

void CheckpointSaverHook::after_create_session(MonitoredSession& session) {
  saved_step_ = session.restored_step();
  options_.timer.done();
  if (options_.at_start && saved_step_ != session.global_step()) save(session, false);
}

void CheckpointSaverHook::before_run(MonitoredSession& session) {
  if (session.is_chief() && options_.timer.due_by_clock()) session.request_save();
}

void CheckpointSaverHook::after_run(MonitoredSession& session, const StepResult& result) {
  const bool by_epoch =
      result.epoch_ended && options_.every_epochs > 0 && (result.epoch + 1) % options_.every_epochs == 0;
  const bool requested = session.take_save_request();
  // The last one comes at the end, behind the last evaluation: a run that it calls finished has nothing left
  // to do.
  if ((requested || by_epoch || options_.timer.due_by_step(result.step)) && !session.should_stop())
    save(session, false);
}

void CheckpointSaverHook::end(MonitoredSession& session) {
  if (saved_step_ != session.global_step()) save(session, true);
  if (!session.is_chief()) return;
  for (const auto& listener : listeners_) listener->end(session, session.global_step());
}

void CheckpointSaverHook::save(MonitoredSession& session, bool final) {
  set_long_phase("saving a checkpoint");
  const std::int64_t step = session.global_step();
  const VariableStore& variables = session.variables();
  if (options_.require_finite) check_finite(variables, step);
  saved_step_ = step;
  options_.timer.done();
  if (!session.is_chief()) return;
  const Cursor cursor = session.trainer().cursor();
  const CheckpointHeader header{.global_step = step,
                                .epoch = cursor.epoch,
                                .samples_consumed = cursor.samples_consumed,
                                .shards = session.parts().shards,
                                .seed = session.parts().seed,
                                .config = options_.config_text,
                                .lockstep_version = std::string(kVersion)};
  for (const auto& listener : listeners_) listener->before_save(session, step);
  std::vector<CheckpointTensor> tensors = state_tensors(variables, &session.parts().optimizer);
  tensors.insert(tensors.end(), session.state().begin(), session.state().end());
  const Traced traced("saving", "checkpoint");
  try {
    const std::string path = store_.save(header, tensors);
    if (final) session.reports().note(fmt::format("checkpoint {}", path));
    for (const auto& listener : listeners_)
      if (listener->after_save(session, step, path))
        session.request_stop("a listener of the checkpoint saver asks for it");
  } catch (const Error& error) {
    if (final) throw;
    log_warning("the checkpoint of step {} could not be written, training goes on: {}", step, error.what());
  }
}

}  // namespace lockstep
