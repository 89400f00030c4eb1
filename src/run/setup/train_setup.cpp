// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/setup/train_setup.h"

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
#include "run/setup/gpu_choices.h"
#include "session/distributed_state.h"
#include "train/server_options.h"
#include "train/sparse_gradients.h"
#include "train/step_sums.h"
#include "train/step_update.h"
#include "train/trainer.h"
#include "train/trainer_options.h"
#include "train/update_parts.h"

namespace lockstep {

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
  options.branches = context.config().gpu.branches;
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
  check_aggregate(config, options.layout.parts());
  return options;
}

}  // namespace

TrainerSetup::TrainerSetup(RunContext& context, RunPlan planned, const DeviceFunction& device_fn)
    : plan(std::move(planned.steps)),
      clock(std::move(planned.clock)),
      optimizer(std::move(planned.optimizer)),
      schedules(std::move(planned.schedules)) {
  const Config& config = context.config();
  const VariableStore& variables = *context.model().variables;
  const bool trains = !planned.is_replay;
  TrainerOptions options = trainer_options(context);
  std::vector<Range> held;
  if (const int ranks = context.control().size(); trains && config.optimizer.shard && ranks > 1) {
    ownership =
        share_update(variables, ranks, context.shards(), options.bucket_first_bytes, options.bucket_bytes);
    held = held_parts(*ownership, variables, context.control().rank());
  }
  if (trains && config.cluster.used()) {
    options.servers = shared([&] { return server_options(context, clock, device_fn); });
    if (context.control().size() > 1) {
      ownership = options.servers->layout.ownership;
      held = held_parts(*ownership, variables, context.control().rank());
    }
    options.reducer.overlap = false;  // workers and servers exchange messages of their own
  }
  if (!trains) options.gating = Gating::graph;
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
  const std::optional<AverageOptions> average = trains ? config.average : std::nullopt;
  options.schedules = schedules.get();
  if (average) options.average = average->resolved(clock);
  trainer = std::make_unique<Trainer>(context.executor_context(), context.gradients(), context.control(),
                                      context.train_data(), plan, *optimizer, options);
  const Executor& executor = trainer->executor();
  context.workers().grow_scratch(executor.scratch_bytes(), executor.num_lanes());
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

RunPlan plan_of_context(RunContext& context, RunPlanOptions options) {
  options.shards = context.shards();
  options.on_gpu = context.device().is_gpu();
  options.logs_warnings = context.is_chief();
  return shared([&] {
    return plan_run(context.config(), context.model(), context.train_set(),
                    options.has_session ? context.eval_set() : UsedDataset(), context.take_optimizer(),
                    options);
  });
}

std::unique_ptr<TrainerSetup> make_trainer(RunContext& context, const DeviceFunction& device_fn,
                                           const std::string& run_dir) {
  RunPlan planned = plan_of_context(context, {.has_session = false});
  choose_gpu_algorithms(context, planned.steps.distinct_shard_sizes(), run_dir);
  return std::make_unique<TrainerSetup>(context, std::move(planned), device_fn);
}

}  // namespace lockstep
