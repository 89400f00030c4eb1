// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/setup/train_setup.h"
#include "run/setup/clock_of_run.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "comm/agree.h"
#include "comm/shared_error.h"
#include "core/hash.h"
#include "core/log.h"
#include "core/process_environment.h"
#include "core/range.h"
#include "run/sections/tf_config.h"
#include "run/setup/server_check.h"
#include "run/setup/training_check.h"
#include "session/distributed_state.h"
#include "train/server_options.h"
#include "train/sparse_gradients.h"
#include "train/step_sums.h"
#include "train/step_update.h"
#include "train/trainer.h"
#include "train/trainer_options.h"
#include "train/update_parts.h"

namespace lockstep {

StepPlanSpec step_plan_spec(const RunContext& context) {
  StepPlanSpec spec = order_of_samples(context.config(), context.train_set());
  spec.shards = context.shards();
  spec.seed = context.seed();
  return spec;
}

StepPlanSpec order_of_samples(const Config& config, const UsedDataset& data) {
  const TrainingOptions& train = config.train;
  StepPlanSpec spec{.num_samples = data->size(),
                    .batch_size = train.batch_size,
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

ScheduleRun schedule_run(const Config& config, const RunClock& clock) {
  return {.steps = config.train.total_steps(clock), .clock = clock, .seed = config.general.seed};
}

void begin_schedules(const Config& config, const RunClock& clock, RunSchedules& schedules, bool warns) {
  const ScheduleRun run = schedule_run(config, clock);
  schedules.begin(run);
  for (const ScheduledNumber* number : schedules.numbers())
    if (warns && number->warmup_steps() >= run.steps)
      log_warning("{}: the run ends after {} steps, in the warm-up of {}, which takes {}", number->where(),
                  run.steps, number->option(), number->warmup_steps());
}

GradientSum gradient_sum(const CommunicationOptions& comm, bool on_gpu,
                         std::shared_ptr<DeviceCommunicator> direct) {
  using Nodes = HostTreeSum::Nodes;
  const ReducerDevice gpu{.direct = std::move(direct)};
  if (comm.fast_reduction) return FastSum{on_gpu ? std::optional(gpu) : std::nullopt};
  if (on_gpu) return DeviceTreeSum{.place = gpu, .compress = comm.compress};
  if (comm.error_feedback) return HostTreeSum{.nodes = Nodes::rounded_with_feedback};
  return HostTreeSum{.nodes = comm.compress ? Nodes::rounded : Nodes::exact};
}

TrainerOptions trainer_options(RunContext& context) {
  using Overlap = CommunicationOptions::Overlap;
  const CommunicationOptions& comm = context.config().comm;
  TrainerOptions options;
  options.regularization = context.model().regularization;
  options.clip = context.config().gradients;
  options.scales_loss = context.config().precision.loss_scale.used();
  const int ranks = context.world().size(), threads = context.workers().pool().size();
  const bool has_core = context.device().is_gpu() || context.cores_per_rank() > threads;
  const bool wanted = comm.overlap == Overlap::on || (comm.overlap == Overlap::automatic && has_core);
  options.reducer.overlap = wanted && ranks > 1 && context.may_overlap();
  if (comm.overlap == Overlap::on && ranks > 1 && !context.may_overlap() && context.is_chief())
    log_warning(
        "comm.overlap is on, but this MPI library does not allow a communication thread "
        "(MPI_THREAD_MULTIPLE)");
  options.reducer.sum = gradient_sum(comm, context.device().is_gpu(), context.direct_gradients());
  options.bucket_first_bytes = comm.bucket_first_bytes;
  options.bucket_bytes = comm.bucket_bytes;
  options.gating = context.config().optimizer.gating;
  return options;
}

namespace {

/// Where variables live. The same on all ranks.
std::vector<int> agreed_places(RunContext& context, const DeviceFunction& device_fn) {
  Communicator& control = context.control();
  std::vector<int> places;
  agree(
      control,
      [&] {
        const VariablePlacement placement{placement_rules(context.config().section("cluster")), device_fn};
        places = server_places(context.config().cluster, placement, *context.model().variables);
      },
      "placing variables on servers");
  const std::uint64_t mine = hash64(places.data(), places.size() * sizeof(int));
  std::vector<std::uint64_t> all(static_cast<std::size_t>(control.size()));
  control.allgather(&mine, sizeof mine, all.data(), "comparing the places of variables");
  for (std::size_t rank = 1; rank < all.size(); ++rank)
    if (all[rank] != all.front())
      throw Error(ErrorKind::config,
                  fmt::format("the device functions of ranks 0 and {} place variables differently", rank), "",
                  "A device function must say the same on all ranks.");
  return places;
}

ServerTrainingOptions server_options(RunContext& context, const RunClock& clock,
                                     const DeviceFunction& device_fn) {
  const Config& config = context.config();
  check_workers(config.cluster, context.control().size());
  const Params& section = config.section("cluster");
  const ClusterRoles roles =
      cluster_roles(context.control(), context.hosts(), cluster_tasks(section, process_environment),
                    config.cluster.servers);
  // One rank is worker and server at once.
  std::vector<int> server_ranks = context.control().size() == 1
                                      ? std::vector<int>(static_cast<std::size_t>(config.cluster.servers), 0)
                                      : roles.ranks_of("ps");
  ServerTrainingOptions options{
      .layout = server_layout(config.cluster, *context.model().variables, std::move(server_ranks),
                              agreed_places(context, device_fn), context.control().size(), context.shards(),
                              context.workers().pool().size()),
      .staleness = config.cluster.staleness,
      .meet_every_steps = config.cluster.meeting(),
      .aggregate = config.cluster.aggregate,
      .last_step = config.train.total_steps(clock),
      .bucket_bytes = config.comm.bucket_bytes};
  options.layout.placed_by_program = static_cast<bool>(device_fn);
  if (!options.layout.is_server(roles.rank))
    options.first_step = first_step_of_worker(config.cluster.worker_delay_steps, roles.global_id());
  if (options.aggregate && *options.aggregate > options.layout.parts())
    throw config.error("cluster", "aggregate",
                       fmt::format("a batch has {} parts, and {} of them are wanted", options.layout.parts(),
                                   *options.aggregate),
                       "Give fewer, or more cluster.parts and shards.");
  return options;
}

}  // namespace

TrainerSetup::TrainerSetup(RunContext& context, const RunNames* names, const DeviceFunction& device_fn,
                           const CheckpointHeader* continues)
    : plan(step_plan_spec(context)),
      clock(shared([&] { return clock_of_run(plan, continues); })),
      optimizer(context.config().optimizer.make()) {
  const Config& config = context.config();
  const VariableStore& variables = *context.model().variables;
  const bool checks = names != nullptr;
  if (checks) {
    shared([&] {
      check_noise_scale(config, variables, context.shards());
      check_shard(config, *optimizer, context.device().is_gpu(), false);
      check_compress(config, variables, context.device().is_gpu());
      check_servers(config, context.model(), *optimizer, context.device().is_gpu(), false);
    });
  }
  TrainerOptions options = trainer_options(context);
  std::vector<Range> held;
  if (const int ranks = context.control().size(); checks && config.optimizer.shard && ranks > 1) {
    ownership =
        share_update(variables, ranks, context.shards(), options.bucket_first_bytes, options.bucket_bytes);
    held = held_parts(*ownership, variables, context.control().rank());
  }
  if (checks && config.cluster.used()) {
    options.servers = shared([&] { return server_options(context, clock, device_fn); });
    if (context.control().size() > 1) {
      ownership = options.servers->layout.ownership;
      held = held_parts(*ownership, variables, context.control().rank());
    }
    options.reducer.overlap = false;  // workers and servers exchange messages of their own
  }
  if (!checks) options.gating = Gating::graph;
  using Shared = CommunicationOptions::SharedMemory;
  const bool small =
      variables.dense_elements() * std::int64_t{sizeof(float)} <= CommunicationOptions::kSharedBytes;
  auto* const tree = std::get_if<HostTreeSum>(&options.reducer.sum);
  LOCKSTEP_CHECK(!ownership || tree != nullptr, "ranks share the update without the tree");
  if (tree != nullptr) {
    tree->ownership = ownership;
    tree->shared_memory =
        !config.cluster.used() && (config.comm.shared_memory == Shared::on ||
                                   (config.comm.shared_memory == Shared::automatic && ownership && small));
  }
  optimizer->create_slots(context.device().device, variables, std::move(held));
  const std::optional<AverageOptions> average = checks ? config.average : std::nullopt;
  schedules = std::make_unique<RunSchedules>(*optimizer, *context.model().graph, average);
  shared([&] {
    if (checks) check_schedules(config, *schedules, *names);
    begin_schedules(config, clock, *schedules, checks && context.is_chief());
  });
  options.schedules = schedules.get();
  if (average) options.average = average->resolved(clock);
  trainer = std::make_unique<Trainer>(context.executor_context(), context.gradients(), context.control(),
                                      context.train_data(), plan, *optimizer, options);
  context.workers().grow_scratch(trainer->executor().scratch_bytes());
  context.check_algorithms();
}

TrainerSetup::~TrainerSetup() = default;

std::unique_ptr<DistributedState> TrainerSetup::distributed_state(RunContext& context) const {
  std::vector<DistributedTensor> tensors;
  if (ownership != nullptr) tensors = distributed_slots(*optimizer, *context.model().variables, *ownership);
  for (const auto& matrices : trainer->update().matrices())
    std::ranges::move(distributed_matrices(*matrices), std::back_inserter(tensors));
  std::ranges::move(distributed_residuals(trainer->sums().reducer(), *context.model().variables),
                    std::back_inserter(tensors));
  if (tensors.empty()) return nullptr;
  return std::make_unique<DistributedState>(context.control(), std::move(tensors));
}

std::unique_ptr<TrainerSetup> make_trainer(RunContext& context, const DeviceFunction& device_fn) {
  const RunNames names = run_names(context.config(), context.model(), context.train_set(), {});
  return std::make_unique<TrainerSetup>(context, &names, device_fn);
}

}  // namespace lockstep
