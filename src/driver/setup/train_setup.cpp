// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/setup/train_setup.h"

#include <limits>

#include "core/log.h"

namespace lockstep {

ModelStorage model_storage(const Config& config, bool updates, int ranks, double memory_bytes) {
  const std::shared_ptr<const Optimizer> optimizer = config.optimizer.make();
  // A lazy optimizer must know which rows a step touches, however many they are.
  const bool lazy = optimizer->lazy();
  return {.activations = config.precision.compute,
          .batch_size = config.train.batch_size,
          .sparse_below = lazy ? std::numeric_limits<double>::infinity() : config.comm.sparse_below,
          .takes_rows = [optimizer](std::string_view name) { return optimizer->takes_rows(name); },
          .updates = updates,
          .slots = static_cast<int>(optimizer->slot_names().size()),
          .slot_ranks = config.optimizer.shards() ? ranks : 1,
          .memory_bytes = memory_bytes};
}

StepPlanSpec step_plan_spec(const RunContext& context) {
  const TrainingOptions& train = context.config().train;
  return {.num_samples = context.train_data().size(),
          .batch_size = train.batch_size,
          .shards = context.shards(),
          .seed = context.seed(),
          .shuffle = train.shuffle,
          .drop_remainder = train.drop_remainder};
}

ScheduleRun schedule_run(const Config& config, const StepPlan& plan) {
  return {.steps = config.train.total_steps(plan.steps_per_epoch()),
          .steps_per_epoch = plan.steps_per_epoch(),
          .samples_per_epoch = plan.samples_per_epoch(),
          .batch_size = plan.spec().batch_size,
          .seed = config.general.seed};
}

void begin_schedules(const Config& config, const StepPlan& plan, RunSchedules& schedules, bool warns) {
  const ScheduleRun run = schedule_run(config, plan);
  schedules.begin(run);
  for (const ScheduledNumber* number : schedules.numbers())
    if (warns && number->warmup_steps() >= run.steps)
      log_warning("{}: the run ends after {} steps, in the warm-up of {}, which takes {}", number->where(),
                  run.steps, number->option(), number->warmup_steps());
}

TrainerOptions trainer_options(RunContext& context) {
  using Overlap = CommunicationOptions::Overlap;
  const CommunicationOptions& comm = context.config().comm;
  TrainerOptions options;
  options.regularization = context.model().regularization;
  options.clip = context.config().gradients;
  options.scales_loss = context.config().precision.loss_scale.used();
  options.reducer.mode =
      comm.fast_reduction ? GradientReducerOptions::Mode::fast : GradientReducerOptions::Mode::tree;
  const int ranks = context.world().size(), threads = context.workers().pool().size();
  const bool has_core = context.device().is_gpu() || context.cores_per_rank() > threads;
  const bool wanted = comm.overlap == Overlap::on || (comm.overlap == Overlap::automatic && has_core);
  options.reducer.overlap = wanted && ranks > 1 && context.may_overlap();
  if (comm.overlap == Overlap::on && ranks > 1 && !context.may_overlap())
    log_warning(
        "comm.overlap is on, but this MPI library does not allow a communication thread "
        "(MPI_THREAD_MULTIPLE)");
  options.reducer.direct = context.direct_gradients();
  options.bucket_first_bytes = comm.bucket_first_bytes;
  options.bucket_bytes = comm.bucket_bytes;
  return options;
}

}  // namespace lockstep
