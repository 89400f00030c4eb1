// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/hooks/checkpoint_saver_hook.h"

#include <cctype>
#include <chrono>
#include <cmath>

#include "comm/agree.h"
#include "comm/flight_recorder.h"
#include "comm/shared_error.h"
#include "comm/startup_check.h"
#include "core/log.h"
#include "core/plain_nan.h"
#include "core/trace.h"
#include "model/variable_store.h"
#include "optim/moving_average.h"
#include "session/hook_context.h"
#include "session/hooks/nan_guard_hook.h"
#include "session/number_text.h"
#include "session/run_state.h"
#include "train/step_update.h"
#include "train/trainer.h"
#include "train/variable_fingerprint.h"

namespace lockstep {

namespace {

constexpr double kNoticedSeconds = 1;  // of waiting for the disk

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Throws an error that names the first value that is not finite.
void require_finite(const VariableStore& variables, std::int64_t step, std::string checkpoint) {
  checkpoint[0] = static_cast<char>(std::toupper(checkpoint[0]));
  for (const CheckpointTensor& tensor : state_tensors(variables, nullptr)) {
    const float* values = tensor.tensor.f32();
    for (std::int64_t i = 0; i < tensor.tensor.num_elements(); ++i)
      if (!std::isfinite(values[i]))
        throw Error(
            ErrorKind::numeric,
            fmt::format(
                "after step {}, {}[{}] is {}: training has diverged, and no checkpoint is written of it",
                step, tensor.path, i, plain_nan(values[i])),
            "", fmt::format("{}. Try a smaller learning rate.", checkpoint));
  }
}

}  // namespace

CheckpointSaverHook::CheckpointSaverHook(Saver& saver, Options options)
    : Hook("checkpoint_saver"),
      saver_(saver),
      options_(std::move(options)),
      schedule_(options_.triggers, now()) {}

void CheckpointSaverHook::add_listener(std::unique_ptr<CheckpointSaverListener> listener) {
  listeners_.push_back(std::move(listener));
}

void CheckpointSaverHook::begin(HookContext& context) {
  if (!options_.best_metric.empty()) {
    StateSettings settings = context.settings_of(options_.best_metric);
    settings.emplace_back("better", saver_.options().retention.larger_is_better ? "larger" : "smaller");
    context.declare_state(*this, "best", best_, std::move(settings));
  }
  tell(context, [&](CheckpointSaverListener& listener) { listener.begin(context); });
}

/// Calls each listener, on the chief. An error of a listener ends the run on all ranks.
void CheckpointSaverHook::tell(HookContext& context, FunctionRef<void(CheckpointSaverListener&)> what) {
  if (!context.is_chief()) return;
  for (const auto& listener : listeners_) context.keep_errors(*this, [&] { what(*listener); });
}

CheckpointSaverHook::State CheckpointSaverHook::state(HookContext& context) const {
  const SessionParts& parts = context.parts();
  const Device* const device = options_.copy_ways.device;
  MovingAverage* const average = parts.trainer.update().average();
  if (average != nullptr) average->follow(context.global_step());
  const bool on_device = device != nullptr && !device->is_host() && saver_.copies_from_device();
  State state{run_header(context.global_step(), parts.trainer.cursor(), parts.shards, parts.seed,
                         options_.config_text, options_.computed_on, options_.kept,
                         settings_of_state(parts.clock, parts.variables, &parts.optimizer, average,
                                           context.state_pieces())),
              state_tensors(parts.variables, &parts.optimizer, on_device, average, saver_.distributed())};
  state.tensors.insert(state.tensors.end(), context.state().begin(), context.state().end());
  return state;
}

void CheckpointSaverHook::after_create_session(HookContext& context) {
  if (!std::exchange(prepared_, true))
    shared([&] {
      agree(
          context.control(),
          [&] {
            const State all = state(context);
            saver_.prepare(all.header, all.tensors, options_.copy_ways);
          },
          "preparing for checkpoints");
    });
  seen_metrics_ = context.eval_metrics().version();
  if (context.has_begun_anew(*this, "best")) saver_.forget_metrics();  // they are of another metric
  schedule_.began(now());
  // A job that continues from here must not compute again the samples that are left out.
  if (context.rolled_back()) return save(context);
  if (options_.triggers.at_start && context.restored_step() != context.global_step()) save(context);
}

void CheckpointSaverHook::after_run(HookContext& context, const StepResult& result) {
  const std::optional<double> metric = new_metric(context);
  const bool best = metric && is_best(*metric, result.step), requested = context.save_request().take();
  const bool due =
      best || requested || schedule_.due_by_count(result.step, result.epoch_ended, result.epoch + 1);
  collect(context);
  // The last checkpoint is written at the end, after the last evaluation.
  if (context.should_stop()) return;
  if (due) save(context);
  if (context.is_chief() && !saver_.busy() && schedule_.due_by_time(now())) context.request_save();
}

/// The metric that an evaluation of this step has found; also noted for retention.
std::optional<double> CheckpointSaverHook::new_metric(HookContext& context) {
  if (options_.best_metric.empty() || context.eval_metrics().version() == seen_metrics_) return std::nullopt;
  seen_metrics_ = context.eval_metrics().version();
  const auto entry = context.eval_metrics().latest(options_.best_metric);
  if (!entry || entry->step != context.global_step() || !std::isfinite(entry->value)) return std::nullopt;
  saver_.note_metric(entry->step, entry->value);
  return entry->value;
}

/// True if the metric is the best so far; it is then remembered as the best.
bool CheckpointSaverHook::is_best(double metric, std::int64_t step) {
  const bool larger = saver_.options().retention.larger_is_better;
  if (best_[1] >= 0 && !(larger ? metric > best_[0] : metric < best_[0])) return false;
  best_[0] = metric;
  best_[1] = static_cast<double>(step);
  return true;
}

void CheckpointSaverHook::collect(HookContext& context) {
  for (const CheckpointOutcome& outcome : saver_.poll()) {
    schedule_.measured(outcome.blocked_seconds, outcome.write_seconds);
    if (outcome.error) continue;
    context.note_saved(outcome.step);
    context.reports().session_log(SessionStatus::checkpoint, outcome.step, outcome.path);
    if (context.ending() && outcome.step == context.global_step())
      context.reports().note(fmt::format("checkpoint {}", outcome.path));
    tell(context, [&](CheckpointSaverListener& listener) {
      if (listener.after_save(context, outcome.step, outcome.path))
        context.request_stop("a listener of the checkpoint saver asks for it");
    });
  }
}

/// Throws the same error on all ranks if variables differ between ranks or are not finite.
void CheckpointSaverHook::check_variables(HookContext& context) {
  if (!options_.compare_ranks && !options_.require_finite) return;
  const std::int64_t step = context.global_step();
  shared([&] {
    const VariableFingerprint::Result fingerprint = context.trainer().fingerprint().take();
    if (options_.compare_ranks)
      require_same_bits(context.control(), fingerprint.hash,
                        fmt::format("the variables after step {}", step).c_str());
    // A resumed run would begin with the broken variables.
    if (!options_.require_finite) return;
    require_good_step(context);
    if (!fingerprint.finite) require_finite(context.variables(), step, context.checkpoint_text());
  });
}

/// On the chief: waits until the checkpoint in flight is durable, or has failed. Says so once if the disk is
/// what training waits for.
void CheckpointSaverHook::wait_for_the_one_before() {
  if (!saver_.busy()) return;
  const Traced traced("saving", "wait for the checkpoint before");
  const double waited = saver_.wait(saver_.options().timeout_seconds);
  if (waited < kNoticedSeconds || std::exchange(said_slow_, true)) return;
  log_info(
      "checkpoints are due faster than the disk takes them: training has waited {:.1f} s for the one "
      "before; longer intervals cost less",
      waited);
}

/// All ranks, after the same step.
void CheckpointSaverHook::save(HookContext& context) {
  check_variables(context);
  if (!context.is_chief()) {
    if (saver_.distributed() == nullptr) return;
    set_long_phase("saving a checkpoint");
    saver_.save({}, {});
    return;
  }
  set_long_phase("saving a checkpoint");
  // Which steps have a checkpoint must not depend on how fast the disk is: the best one is kept, an evaluated
  // one is exported, a run goes back to the same step.
  wait_for_the_one_before();
  tell(context,
       [&](CheckpointSaverListener& listener) { listener.before_save(context, context.global_step()); });
  const State all = state(context);
  const Traced traced("saving", "copy for a checkpoint");
  saver_.save(all.header, all.tensors);
  context.trainer().update().hold(saver_.copied());
  schedule_.began(now());
}

/// Says which checkpoint is the best, and that commands use the last one.
void CheckpointSaverHook::note_best(HookContext& context) {
  if (options_.best_metric.empty() || !context.is_chief()) return;
  const std::optional<KeptCheckpoint> best = saver_.best();
  if (!best || !best->metric) return;
  const std::string text = fmt::format("best checkpoint: step {}, {} {}", best->step, options_.best_metric,
                                       number_text(*best->metric));
  context.reports().note(
      best->step == context.global_step()
          ? fmt::format("{}; it is the last one, too", text)
          : fmt::format("{}; commands use the last one, step {}, or with --checkpoint best "
                        "this one",
                        text, context.global_step()));
}

void CheckpointSaverHook::end(HookContext& context) {
  // The evaluation at the end is not part of the run's state: a run that continues to more steps later has
  // the bits of one that never ended here.
  new_metric(context);
  if (context.restored_step() != context.global_step() || context.ran_deferred() || context.rollbacks() > 0) {
    set_long_phase("the last checkpoint");
    if (!context.interruption().any())  // for a run without evaluations
      context.trainer().recompute_statistics([&] { return context.interruptions().look().code(); });
    check_variables(context);
    tell(context,
         [&](CheckpointSaverListener& listener) { listener.before_save(context, context.global_step()); });
    const State all = state(context);
    shared([&] { saver_.finish(context.control(), all.header, all.tensors, options_.sync_seconds); });
  }
  collect(context);
  note_best(context);
  tell(context, [&](CheckpointSaverListener& listener) { listener.end(context, context.global_step()); });
}

}  // namespace lockstep
