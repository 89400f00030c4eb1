// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/setup/run_plan.h"

#include <fmt/format.h>

#include <utility>

#include "core/log.h"
#include "run/setup/clock_of_run.h"
#include "run/setup/run_model.h"
#include "run/setup/server_check.h"
#include "run/setup/training_check.h"
#include "train/cluster_tasks.h"
#include "train/server_layout.h"

namespace lockstep {

namespace {

StepPlanSpec order_of_samples(const Config& config, const UsedDataset& data, int shards) {
  const TrainingOptions& train = config.train;
  StepPlanSpec spec{.num_samples = data->size(),
                    .batch_size = train.batch_size,
                    .shards = shards,
                    .seed = config.general.seed,
                    .shuffle = train.shuffle,
                    .last_batch = train.last_batch,
                    .choice = data.use().choice,
                    .repeat = config.data.train_choice.repeat,
                    .quotas = data.use().quotas,
                    .buckets = data.use().buckets,
                    .mixing = data.use().mixing,
                    .window_blocks = train.shuffle_window};
  if (config.data.train_choice.mixes_sources && train.shuffle != Shuffle::samples)
    throw Error(ErrorKind::config,
                "shares of data.sources are taken in a random order, but train.shuffle is not true",
                config.data.sources.front().where,
                "Write shuffle: true in section train, or leave out all shares.");
  if (data.use().quotas != nullptr && train.shuffle != Shuffle::samples)
    throw config.data.train_choice.written.error(
        "balance", "takes the samples of a class in a random order, but train.shuffle is not true",
        "Write shuffle: true in section train, or leave balance out.");
  if (data.use().buckets != nullptr && train.shuffle != Shuffle::samples)
    throw config.data.train_choice.written.error(
        "length_buckets", "takes the samples of a bucket in a random order, but train.shuffle is not true",
        "Write shuffle: true in section train, or leave length_buckets out.");
  if (train.shuffle == Shuffle::blocks) spec.blocks = data.chosen_blocks();
  return spec;
}

void warn_of_long_warmups(const RunSchedules& schedules, const ScheduleRun& run) {
  for (const ScheduledNumber* number : schedules.numbers())
    if (number->warmup_steps() >= run.steps)
      log_warning("{}: the run ends after {} steps, in the warm-up of {}, which takes {}", number->where(),
                  run.steps, number->option(), number->warmup_steps());
}

/// What servers hold, as far as it does not depend on the number of ranks.
void check_placement(const Config& config, const Model& model, int shards) {
  const ClusterOptions& cluster = config.cluster;
  if (!cluster.used()) return;
  server_places(cluster, {placement_rules(config.section("cluster"))}, *model.variables);
  if (cluster.parts) check_aggregate(config, shards / shards_per_part(shards, 1, 1, cluster.parts));
}

}  // namespace

ScheduleRun schedule_run(const Config& config, const RunClock& clock) {
  return {.steps = config.train.total_steps(clock), .clock = clock, .seed = config.general.seed};
}

void check_aggregate(const Config& config, int parts) {
  const std::optional<int>& wanted = config.cluster.aggregate;
  if (wanted && *wanted > parts)
    throw config.error("cluster", "aggregate",
                       fmt::format("a batch has {} parts, and {} of them are wanted", parts, *wanted),
                       "Give fewer, or more cluster.parts and shards.");
}

RunPlan plan_run(const Config& config, const Model& model, const UsedDataset& train, const UsedDataset& eval,
                 std::unique_ptr<Optimizer> optimizer, const RunPlanOptions& options) {
  auto schedules = std::make_unique<RunSchedules>(*optimizer, *model.graph, config.average);
  RunPlan plan{.names = run_names(config, model, train, eval, *schedules),
               .steps = StepPlan(order_of_samples(config, train, options.shards)),
               .clock = {},
               .optimizer = std::move(optimizer),
               .schedules = std::move(schedules)};
  plan.clock = clock_of_run(plan.steps, options.continues);
  if (options.has_session) check_names(config, plan.names);
  check_shard(config, *plan.optimizer, options.on_gpu, options.records);
  check_compress(config, *model.variables, options.on_gpu);
  check_servers(config, model, *plan.optimizer, options.on_gpu, options.records);
  check_placement(config, model, options.shards);
  check_noise_scale(config, *model.variables, options.shards);
  check_schedules(config, *plan.schedules, plan.names);
  const ScheduleRun run = schedule_run(config, plan.clock);
  plan.schedules->begin(run);
  if (options.logs_warnings) warn_of_long_warmups(*plan.schedules, run);
  return plan;
}

RunPlan plan_replay(const Config& config, const Model& model, const UsedDataset& train,
                    std::unique_ptr<Optimizer> optimizer, int shards, const CheckpointHeader* state) {
  RunPlan plan{.names = {},
               .steps = StepPlan(order_of_samples(config, train, shards)),
               .clock = {},
               .optimizer = std::move(optimizer),
               .schedules = nullptr,
               .is_replay = true};
  plan.clock = clock_of_run(plan.steps, state);
  plan.schedules = std::make_unique<RunSchedules>(*plan.optimizer, *model.graph, std::nullopt);
  plan.schedules->begin(schedule_run(config, plan.clock));
  return plan;
}

}  // namespace lockstep
