// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/setup/training.h"
#include "run/setup/gpu_description.h"

#include <algorithm>

#include "comm/agree.h"
#include "comm/shared_error.h"
#include "run/setup/evaluation_settings.h"
#include "run/setup/gpu_choices.h"
#include "run/setup/run_description.h"
#include "run/setup/train_hooks.h"
#include "session/hooks/record_hook.h"
#include "session/hooks/step_clock_hook.h"
#include "session/kept_data.h"
#include "train/trainer.h"

namespace lockstep {

namespace {

std::unique_ptr<Evaluation> make_evaluation(RunContext& context) {
  if (context.eval_data() == nullptr) return nullptr;
  const Config& config = context.config();
  return std::make_unique<Evaluation>(
      context.executor_context(), context.control(), context.eval_set(), config.evaluation_batch_size(),
      bind_metrics(config.eval.metrics, *context.model().heads, *context.model().graph, context.eval_set()));
}

std::unique_ptr<SessionManager> make_manager(RunContext& context, Training& training,
                                             const TrainingStart& start) {
  auto manager =
      std::make_unique<SessionManager>(SessionValues{.control = context.control(),
                                                     .trainer = *training.trainer,
                                                     .variables = *context.model().variables,
                                                     .optimizer = *training.optimizer,
                                                     .distributed = training.distributed.get(),
                                                     .seed = context.seed()},
                                       SessionManager::Options{.run_dir = start.run_dir,
                                                               .warm_start = context.config().warm_start,
                                                               .init_fn = start.additions.init_fn,
                                                               .accepts_changes = true});
  manager->set_first(start.found);
  return manager;
}

std::unique_ptr<MonitoredSession> make_session(RunContext& context, Training& training,
                                               const TrainingStart& start) {
  Model& model = context.model();
  return std::make_unique<MonitoredSession>(
      SessionParts{.control = context.control(),
                   .trainer = *training.trainer,
                   .variables = *model.variables,
                   .optimizer = *training.optimizer,
                   .reports = training.reports,
                   .shards = context.shards(),
                   .seed = context.seed(),
                   .accuracy = model.accuracy(),
                   .part_accuracy = model.report_accuracy,
                   .evaluation_settings =
                       [&context](std::string_view metric) {
                         const Config& config = context.config();
                         StateSettings settings =
                             evaluation_settings(config.root, config.base_directory, metric);
                         if (const auto* const data = context.eval_data())
                           settings.emplace_back("contents of the evaluation data", data->fingerprint());
                         return settings;
                       },
                   .clock = training.clock},
      MonitoredSession::Options{.run_dir = start.run_dir,
                                .max_recoveries = context.config().train.max_recoveries,
                                .max_setbacks = context.config().train.max_setbacks},
      [&training](HookContext& hooks) { return training.manager->create(hooks, training.saver); });
}

std::shared_ptr<const KeptFiles> kept_files(RunContext& context) {
  if (!context.is_chief()) return nullptr;
  return std::make_shared<const KeptFiles>(kept_data(context.train_data(), *context.model().heads));
}

void add_hooks(RunContext& context, Training& training, const TrainingStart& start, const RunNames& names) {
  MonitoredSession& session = *training.session;
  if (!start.record.empty())  // first: it keeps what is known when another hook ends the run
    session.add(std::make_unique<RecordHook>(
        context.executor_context(), RecordHook::Options{.steps = {start.record.begin(), start.record.end()},
                                                        .config_text = resolved_config_text(context.config()),
                                                        .environment = context.environment(),
                                                        .distributed = training.distributed.get()}));
  add_train_hooks(session, context.config(),
                  {.clock = training.clock,
                   .evaluation = training.evaluation.get(),
                   .schedules = *training.schedules,
                   .saver = training.saver,
                   .computed_on = gpu_lines(context.gpu_identity()),
                   .kept = kept_files(context),
                   .copy_ways = {.pool = &context.workers().pool(),
                                 .device = &context.executor_context().device,
                                 .stream = context.executor_context().lanes.front().stream},
                   .status = start.status,
                   .lock = start.lock,
                   .job_end = start.job_end,
                   .quiet = start.quiet,
                   .additions = &start.additions,
                   .names = names,
                   .description = run_description(context.config(), context.model(),
                                                  context.device().is_gpu(), training.evaluation != nullptr),
                   .embeddings = embedding_tables(context.model())});
  session.add(  // last: it measures the step without the other hooks
      std::make_unique<StepClockHook>([&context](double seconds) { context.step_took(seconds); }));
}

}  // namespace

Training::Training(RunContext& context, RunPlan planned, const TrainingStart& start)
    : TrainerSetup(context, std::move(planned), start.additions.device_fn),
      saver(context.is_chief(), start.run_dir, context.config().checkpoint.saver),
      reports(context.is_chief(), start.run_dir,
              {.events = context.config().summary.events,
               .metrics = context.config().summary.metrics,
               .flush_seconds = context.config().summary.flush_seconds,
               .patience_seconds = context.config().summary.timeout_seconds}) {}

std::unique_ptr<Training> make_training(RunContext& context, const TrainingStart& start) {
  const Config& config = context.config();
  RunPlan planned = plan_of_context(
      context,
      {.records = !start.record.empty(), .continues = start.found.exists() ? &start.found.header : nullptr});
  const RunNames names = planned.names;
  choose_gpu_algorithms(context, planned.steps.distinct_shard_sizes(), start.run_dir);
  auto training = std::make_unique<Training>(context, std::move(planned), start);
  training->saver.set_before_write(training->reports.syncer());
  training->distributed = training->distributed_state(context);
  training->saver.set_distributed(training->distributed.get());
  LOCKSTEP_CHECK(std::ranges::equal(training->trainer->metrics().metrics(), names.step_metrics, {},
                                    &StepMetrics::Metric::name),
                 "run_names() does not know all metrics of a step");
  if (start.additions.evaluates) training->evaluation = make_evaluation(context);
  if (training->evaluation) {
    context.workers().grow_scratch(training->evaluation->scratch_bytes());
    context.check_algorithms();
  }
  training->manager = make_manager(context, *training, start);
  training->session = make_session(context, *training, start);
  add_hooks(context, *training, start, names);
  if (start.status != nullptr) start.status->set_total_steps(config.train.total_steps(training->clock));
  return training;
}

}  // namespace lockstep
