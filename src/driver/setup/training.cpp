// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/setup/training.h"

#include <algorithm>

#include "comm/agree.h"
#include "comm/shared_error.h"
#include "driver/setup/train_hooks.h"
#include "driver/setup/train_setup.h"
#include "driver/setup/training_check.h"
#include "session/hooks/record_hook.h"
#include "session/hooks/step_clock_hook.h"
#include "session/warm_start.h"
#include "train/trainer.h"

namespace lockstep {

namespace {

std::unique_ptr<Evaluation> make_evaluation(RunContext& context) {
  if (context.eval_data() == nullptr) return nullptr;
  const Config& config = context.config();
  return std::make_unique<Evaluation>(context.executor_context(), context.control(), *context.eval_data(),
                                      config.evaluation_batch_size(),
                                      bind_metrics(config.eval.metrics, *context.model().heads,
                                                   *context.model().graph, *context.eval_data()));
}

/// Begins an attempt: at the checkpoint that the job found, in a recovery at the newest one, or with initial
/// values. Returns the step of the checkpoint; -1: none. All ranks.
std::int64_t restore(RunContext& context, Training& training, HookContext& hooks) {
  const Config& config = context.config();
  VariableStore& variables = *context.model().variables;
  FoundCheckpoint& found = training.found;
  shared([&] {
    if (hooks.begins_again()) {
      agree(
          context.control(), [&] { training.saver.wait(config.checkpoint.saver.timeout_seconds); },
          "waiting for the checkpoint in flight");
      found = find_checkpoint(context.world(), hooks.run_dir(), "");
      variables.initialize(context.seed());
      training.optimizer->reset_slots();
    }
    if (found.exists())
      restore_state(context.world(), found, variables, training.optimizer.get(), training.trainer->average(),
                    hooks.state(found.deferred), training.sharded.get());
    else if (config.warm_start)
      warm_start(context.world(), *config.warm_start, variables);
  });
  training.trainer->set_position(found.exists() ? found.header.global_step : 0,
                                 {found.header.epoch, found.header.samples_consumed});
  return found.exists() ? found.header.global_step : -1;
}

/// With optimizer.shard and several ranks, each rank gets the slots of the part that it updates.
void create_slots(RunContext& context, Training& training, TrainerOptions& options) {
  const VariableStore& variables = *context.model().variables;
  Communicator& control = context.control();
  std::vector<Range> held;
  if (context.config().optimizer.shards() && control.size() > 1) {
    options.reducer.ownership = share_update(variables, control.size(), context.shards(),
                                             options.bucket_first_bytes, options.bucket_bytes);
    held = held_parts(*options.reducer.ownership, variables, control.rank());
    training.sharded =
        std::make_unique<ShardedSlots>(control, *training.optimizer, variables, *options.reducer.ownership);
    training.saver.set_sharded(training.sharded.get());
  }
  training.optimizer->create_slots(context.device().device, variables, std::move(held));
}

std::unique_ptr<MonitoredSession> make_session(RunContext& context, Training& training,
                                               const std::string& run_dir) {
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
                   .part_accuracy = model.report_accuracy},
      MonitoredSession::Options{.run_dir = run_dir,
                                .max_recoveries = context.config().train.max_recoveries,
                                .max_setbacks = context.config().train.max_setbacks},
      [&context, &training](HookContext& hooks) { return restore(context, training, hooks); });
}

void add_hooks(RunContext& context, Training& training, const TrainingStart& start) {
  MonitoredSession& session = *training.session;
  if (!start.record.empty())  // first: it keeps what is known when another hook ends the run
    session.add(std::make_unique<RecordHook>(
        context.executor_context(), RecordHook::Options{.steps = {start.record.begin(), start.record.end()},
                                                        .config_text = resolved_config_text(context.config()),
                                                        .environment = context.environment()}));
  add_train_hooks(session, context.config(),
                  {.plan = training.plan,
                   .evaluation = training.evaluation.get(),
                   .schedules = *training.schedules,
                   .saver = training.saver,
                   .copy_ways = {.pool = &context.workers().pool(),
                                 .device = &context.executor_context().device,
                                 .stream = context.executor_context().lanes.front().stream},
                   .status = start.status,
                   .lock = start.lock,
                   .job_end = start.job_end,
                   .quiet = start.quiet});
  session.add(  // last: it measures the step without the other hooks
      std::make_unique<StepClockHook>([&context](double seconds) { context.step_took(seconds); }));
}

}  // namespace

std::unique_ptr<Training> make_training(RunContext& context, const TrainingStart& start) {
  const Config& config = context.config();
  std::unique_ptr<Training> training(
      new Training{.found = start.found,
                   .plan = StepPlan(step_plan_spec(context)),
                   .optimizer = config.optimizer.make(),
                   .saver{context.is_chief(), start.run_dir, config.checkpoint.saver},
                   .reports{context.is_chief(),
                            start.run_dir,
                            {.events = config.summary.events,
                             .metrics = config.summary.metrics,
                             .flush_seconds = config.summary.flush_seconds}}});
  training->saver.set_before_write(training->reports.syncer());
  const RunNames names = run_names(config, context.model(), context.eval_data());
  shared([&] {
    check_names(config, names);
    check_noise_scale(config, *context.model().variables, context.shards());
    check_shard(config, *training->optimizer, context.device().is_gpu(), !start.record.empty());
  });
  TrainerOptions options = trainer_options(context);
  create_slots(context, *training, options);
  training->schedules =
      std::make_unique<RunSchedules>(*training->optimizer, *context.model().graph, config.average);
  check_schedules(config, *training->schedules, names);
  begin_schedules(config, training->plan, *training->schedules, context.is_chief());
  options.schedules = training->schedules.get();
  if (config.average) options.average = config.average->resolved(training->plan.steps_per_epoch());
  training->trainer =
      std::make_unique<Trainer>(context.executor_context(), context.gradients(), context.control(),
                                context.train_data(), training->plan, *training->optimizer, options);
  LOCKSTEP_CHECK(std::ranges::equal(training->trainer->metrics().metrics(), names.step_metrics, {},
                                    &StepMetrics::Metric::name),
                 "run_names() does not know all metrics of a step");
  training->evaluation = make_evaluation(context);
  context.workers().grow_scratch(std::max(training->trainer->scratch_bytes(),
                                          training->evaluation ? training->evaluation->scratch_bytes() : 0));
  training->session = make_session(context, *training, start.run_dir);
  add_hooks(context, *training, start);
  if (start.status != nullptr)
    start.status->set_total_steps(config.train.total_steps(training->plan.steps_per_epoch()));
  return training;
}

}  // namespace lockstep
