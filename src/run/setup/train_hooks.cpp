// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/setup/train_hooks.h"

#include "comm/shared_error.h"
#include "core/log.h"
#include "run/setup/training_check.h"
#include "session/hooks/checkpoint_saver_hook.h"
#include "session/hooks/drift_check_hook.h"
#include "session/hooks/evaluation_hook.h"
#include "session/hooks/hook_table.h"
#include "session/hooks/loss_scale_hook.h"
#include "session/hooks/nan_guard_hook.h"
#include "session/hooks/noise_scale_hook.h"
#include "session/hooks/progress_hook.h"
#include "session/hooks/projector_hook.h"
#include "session/hooks/run_directory_hook.h"
#include "session/hooks/schedule_hook.h"
#include "session/hooks/signal_hook.h"
#include "session/hooks/status_hook.h"
#include "session/hooks/stop_hooks.h"
#include "session/hooks/straggler_hook.h"
#include "session/hooks/summary_hooks.h"
#include "session/hooks/switch_files_hook.h"
#include "session/run_names.h"

namespace lockstep {

namespace {

/// The metric of keep_best; empty if it is off.
std::string best_metric(const Config& config) {
  return config.checkpoint.saver.retention.keep_best == 0 ? "" : with_split(config.checkpoint.best_metric);
}

}  // namespace

double sync_seconds(const Config& config) {
  constexpr double kSyncSeconds = 5;
  const double limit = config.comm.timeout_seconds.value_or(0);
  return limit > 0 ? std::min(limit / 4, kSyncSeconds) : kSyncSeconds;
}

void add_train_hooks(MonitoredSession& session, const Config& config, const TrainHookParts& parts) {
  Evaluation* evaluation = parts.evaluation;
  Saver& saver = parts.saver;
  session.add(std::make_unique<RunDirectoryHook>(parts.lock));
  if (parts.job_end) {
    if (session.context().is_chief())
      log_info("this job ends in {}, says {}", format_duration(parts.job_end->time - unix_time()),
               parts.job_end->source);
    session.add(std::make_unique<TimeLimitHook>(
        saver, TimeLimitHook::Options{.end = parts.job_end->time,
                                      .margin_seconds = config.train.time_margin_seconds,
                                      .clock = unix_time}));
  }
  const GuardAction on_nan = config.train.on_nan;
  session.add(std::make_unique<SignalHook>());
  session.add(std::make_unique<SwitchFilesHook>(session.context().run_dir()));
  session.add(std::make_unique<NanGuardHook>(on_nan));
  if (const LossScale& scale = config.precision.loss_scale; scale.used())
    session.add(std::make_unique<LossScaleHook>(scale, on_nan));
  else if (config.gradients.clips_norm() || config.gradients.watch)
    session.add(std::make_unique<GradientGuardHook>(on_nan));
  if (config.gradients.noise_scale) session.add(std::make_unique<NoiseScaleHook>());
  session.add(std::make_unique<DriftCheckHook>(config.comm.check_every_steps));
  if (const int ranks = session.context().control().size(); ranks > 1 && config.comm.straggler_factor)
    session.add(std::make_unique<StragglerHook>(
        ranks, StragglerOptions{.factor = *config.comm.straggler_factor, .least_seconds = 1e-3}));
  if (parts.status != nullptr) parts.status->set_straggler_factor(config.comm.straggler_factor.value_or(0));
  session.add(std::make_unique<SummarySaverHook>(
      HookTimer(config.summary.every_steps, config.summary.every_seconds)));
  const auto add_summaries = [&](bool after_evaluation) {
    if (config.summary.events || config.summary.metrics)
      for (const SummarySpec& spec : config.summary.parts)
        if (spec.part.after_evaluation == after_evaluation) session.add(spec.make());
  };
  add_summaries(false);
  session.add(std::make_unique<StepCounterHook>(HookTimer(config.summary.counter_every_steps, {})));
  if (parts.description.any()) session.add(std::make_unique<RunDescriptionHook>(parts.description));
  if (config.summary.projector) session.add(std::make_unique<ProjectorHook>(parts.embeddings));
  if (evaluation != nullptr)
    session.add(std::make_unique<EvaluationHook>(*evaluation, config.eval.every_epochs,
                                                 config.eval.every_steps, config.eval.averages));
  add_summaries(true);
  if (auto follows = std::make_unique<ScheduleHook>(parts.schedules); !follows->empty())
    session.add(std::move(follows));
  for (const HookSpec& hook : config.hooks) session.add(hook.make(config.hook_setting()));
  if (parts.additions != nullptr)
    for (const auto& make : parts.additions->hooks) {
      auto hook = make();
      shared([&] {
        hook->check(parts.names);
        check_direction(*hook, config.eval.metrics);
      });
      session.add(std::move(hook));
    }
  if (config.train.steps)
    session.add(std::make_unique<StopAtStepHook>(*config.train.steps));
  else
    session.add(std::make_unique<StopAfterEpochsHook>(*config.train.epochs));
  auto checkpoints = std::make_unique<CheckpointSaverHook>(
      saver, CheckpointSaverHook::Options{.triggers = config.checkpoint.triggers,
                                          .best_metric = best_metric(config),
                                          .compare_ranks = config.comm.check_every_steps > 0,
                                          .require_finite = on_nan != GuardAction::warn,
                                          .config_text = resolved_config_text(config),
                                          .computed_on = parts.computed_on,
                                          .kept = parts.kept,
                                          .sync_seconds = sync_seconds(config),
                                          .copy_ways = parts.copy_ways});
  if (parts.additions != nullptr)
    for (const auto& make : parts.additions->listeners) checkpoints->add_listener(make());
  session.add(std::move(checkpoints));
  session.add(std::make_unique<StatusHook>(parts.status, saver));
  if (!parts.quiet)
    session.add(std::make_unique<ProgressHook>(config.train.total_steps(parts.clock),
                                               config.train.epochs.value_or(0)));
}

}  // namespace lockstep
