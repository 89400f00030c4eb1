// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/session_manager.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "core/log.h"
#include "core/name_list.h"
#include "core/timer.h"
#include "model/variable_store.h"
#include "optim/moving_average.h"
#include "optim/optimizer.h"
#include "session/agree_shared.h"
#include "session/hook_context.h"
#include "session/progress.h"
#include "session/saver.h"
#include "train/step_update.h"
#include "train/trainer.h"

namespace lockstep {

namespace {

/// How often ranks that wait look for signals, together.
constexpr double kLookSeconds = 0.25;

/// Throws Error(checkpoint) if the run cannot go on from it.
void require_continues(const FoundCheckpoint& found, std::uint64_t seed) {
  if (!found.exists()) return;
  if (found.header.weights_only)
    throw Error(ErrorKind::checkpoint, "holds weights only: there is no run in it that could be continued",
                found.path, "Begin a new run with a warm start from it.");
  if (found.header.seed != seed)
    throw Error(ErrorKind::checkpoint,
                fmt::format("its run began with seed {}, and this one has {}", found.header.seed, seed),
                found.path,
                "The order of the samples depends on it: use the same seed, or a new run directory.");
}

bool all_ranks(Communicator& control, bool mine, const char* what) {
  const char own = mine ? 1 : 0;
  std::vector<char> all(static_cast<std::size_t>(control.size()));
  control.allgather(&own, sizeof own, all.data(), what);
  return std::ranges::all_of(all, [](char rank) { return rank != 0; });
}

}  // namespace

SessionManager::SessionManager(const SessionValues& values, Options options)
    : values_(values), options_(std::move(options)) {}

SessionManager::Prepared SessionManager::prepare(const PrepareOptions& options) {
  if (options.wait_for_checkpoint && options.checkpoint.empty())
    if (const auto interruption = wait_for_checkpoint(options.max_wait_seconds); interruption.any())
      return {.interruption = interruption};
  reset();
  found_ = shared([&] { return find_checkpoint(values_.control, options_.run_dir, options.checkpoint); });
  if (found_.exists())
    restore({}, {});
  else
    set_initial_values();
  call_local_init();
  require_ready();
  return {.restored_step = found_.exists() ? found_.header.global_step : -1};
}

bool SessionManager::recover() {
  const FoundCheckpoint found =
      shared([&] { return find_checkpoint(values_.control, options_.run_dir, ""); });
  if (!found.exists()) return false;
  reset();
  found_ = found;
  restore({}, {});
  call_local_init();
  return is_ready();
}

SessionManager::Prepared SessionManager::wait_for_session(double max_wait_seconds) {
  const InterruptionRequest interruption =
      wait_until(max_wait_seconds, "a session that is ready", [&] { return recover(); });
  if (interruption.any()) return {.interruption = interruption};
  return {.restored_step = found_.header.global_step};
}

InterruptionRequest SessionManager::wait_for_checkpoint(double max_wait_seconds) {
  return wait_until(max_wait_seconds, "a checkpoint", [&] {
    return shared([&] { return find_checkpoint(values_.control, options_.run_dir, "").exists(); });
  });
}

std::int64_t SessionManager::create(HookContext& hooks, Saver& saver) {
  if (hooks.begins_again()) {
    agree_shared(values_.control, "waiting for the checkpoint in flight",
                 [&] { saver.wait(saver.options().timeout_seconds); });
    first_.reset();
  }
  reset();
  found_ = first_ ? *std::exchange(first_, {})
                  : shared([&] { return find_checkpoint(values_.control, options_.run_dir, ""); });
  if (found_.exists())
    hooks.set_outcomes(restore(hooks.state(found_.deferred), hooks.state_pieces()));
  else
    set_initial_values();
  call_local_init();
  require_ready();
  return found_.exists() ? found_.header.global_step : -1;
}

/// Initial values again, if something has been set since the variables were made.
void SessionManager::reset() {
  if (!std::exchange(began_, true)) return;
  values_.variables.initialize(values_.seed);
  values_.optimizer.reset_slots();
  if (MovingAverage* const average = values_.trainer.update().average())
    average->set_progress(AverageProgress::beginning(average->rule(), 0));
  for (const auto& matrices : values_.trainer.update().matrices()) matrices->work().reset();
}

std::vector<PieceOutcome> SessionManager::restore(std::span<const CheckpointTensor> hook_state,
                                                  std::span<const StatePiece> pieces) {
  std::vector<PieceOutcome> outcomes = shared([&] {
    require_continues(found_, values_.seed);
    return restore_state(values_.control, found_, values_.variables,
                         {.optimizer = &values_.optimizer,
                          .average = values_.trainer.update().average(),
                          .hooks = hook_state,
                          .hook_pieces = pieces,
                          .distributed = values_.distributed,
                          .accepts_changes = options_.accepts_changes});
  });
  values_.trainer.set_position(found_.header.global_step,
                               {found_.header.epoch, found_.header.samples_consumed});
  if (!std::exchange(reported_, true))
    for (const std::string& line : lines_of(outcomes)) log_info("{}", line);
  return outcomes;
}

void SessionManager::set_initial_values() {
  shared([&] {
    if (options_.warm_start) warm_start(values_.control, *options_.warm_start, values_.variables);
  });
  values_.trainer.set_position(0, {});
  if (!options_.init_fn) return;
  agree_shared(values_.control, "init_fn", [&] { options_.init_fn(values_.variables); });
  values_.variables.to_device();
}

void SessionManager::call_local_init() {
  if (!options_.local_init) return;
  agree_shared(values_.control, "local_init", [&] { options_.local_init(values_.variables); });
  values_.variables.to_device();
}

/// This rank's answer.
std::string SessionManager::missing() const {
  if (const std::vector<std::string> unset = values_.variables.unset(); !unset.empty())
    return fmt::format("these variables have no values: {}", name_list(unset));
  return options_.ready ? options_.ready() : "";
}

void SessionManager::require_ready() {
  agree_shared(values_.control, "is the session ready", [&] {
    const std::string what = missing();
    if (what.empty()) return;
    const bool variables = !values_.variables.unset().empty();
    throw Error(ErrorKind::config, variables ? what : fmt::format("the session is not ready: {}", what), "",
                variables ? "They have no initializer: give them values in the session's init_fn, by a warm "
                            "start, or from a checkpoint."
                          : "");
  });
}

bool SessionManager::is_ready() {
  std::string what;
  agree_shared(values_.control, "is the session ready", [&] { what = missing(); });
  const bool ready = all_ranks(values_.control, what.empty(), "is the session ready");
  if (!what.empty()) log_info("the session is not ready: {}", what);
  return ready;
}

/// Looks every recovery_wait_seconds, by the chief's clock.
template <typename Look>
InterruptionRequest SessionManager::wait_until(double max_wait_seconds, const char* what, Look look) {
  Communicator& control = values_.control;
  const Timer since_start;
  while (!look()) {
    bool late = since_start.seconds() + options_.recovery_wait_seconds > max_wait_seconds;
    control.broadcast(&late, sizeof late, 0, "the limit of the wait");
    if (late)
      throw SharedError(Error(ErrorKind::checkpoint,
                              fmt::format("waited {} for {}", format_duration(max_wait_seconds), what),
                              options_.run_dir, "Check the job that trains, or wait longer."));
    const Timer since_look;
    for (;;) {
      if (const InterruptionRequest request = agreed(control, signal_request(), "waiting"); request.any())
        return request;
      double left = options_.recovery_wait_seconds - since_look.seconds();
      control.broadcast(&left, sizeof left, 0, "until the next look");
      if (left <= 0) break;
      std::this_thread::sleep_for(std::chrono::duration<double>(std::min(left, kLookSeconds)));
    }
  }
  return {};
}

}  // namespace lockstep
