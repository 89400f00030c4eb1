// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/setup/training_log.h"

#include <algorithm>

#include "comm/transport.h"
#include "config/plain_text.h"
#include "core/cpu.h"
#include "core/log.h"
#include "core/message_lines.h"
#include "core/name_list.h"
#include "core/version.h"
#include "data/reader_dataset.h"
#include "data/sample_stream.h"
#include "model/recomputation.h"
#include "run/setup/default_shards.h"
#include "run/setup/gpu_module.h"
#include "run/setup/widened_products.h"
#include "train/gating.h"
#include "train/one_value_statistics.h"
#include "train/rounds_in_flight.h"
#include "train/server_training.h"
#include "train/step_sums.h"
#include "train/table_rows.h"
#include "train/trainer.h"
#include "train/young_averages.h"

namespace lockstep {

namespace {

std::string counted(int n, const char* what) { return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s"); }

void log_machine(RunContext& context, const Trainer& trainer) {
  const std::string mpi = mpi_library_version();
  const ComputeDevice& device = context.device();
  log_info("lockstep {} ({}); {}, {}", kVersion, kBuild,
           primitive_library_version(context.config().precision.compute), mpi.substr(0, mpi.find(',')));
  log_info("{}, {} of them on {}, each with {} on {}; device: {}{}", counted(context.world().size(), "rank"),
           context.ranks_on_host(), host_name(), counted(context.workers().pool().size(), "thread"),
           counted(context.cores_per_rank(), "core"), device.is_gpu() ? "cuda" : "cpu",
           trainer.sums().reducer().overlaps() ? "; communication overlapped" : "");
  if (device.is_gpu()) log_info("GPUs of the ranks:\n{}", MessageLines{indented(context.device_table(), 2)});
  if (context.shares_gpus())
    log_warning(
        "RANKS SHARE A GPU: they take turns on it, and gradients pass through {}. Start one rank per GPU.",
        !context.direct_gradients()            ? "the host's memory"
        : context.direct_gradients()->blocks() ? "MPI"
                                               : "NCCL and sockets, VERY SLOW (comm.nccl_shared_gpu)");
  if (context.direct_gradients() && context.direct_gradients()->blocks())
    log_info("MPI sends and receives the memory of GPUs");
  if (const std::string widened = widened_products(*context.model().graph); !widened.empty())
    log_info("products in float32, which save no time: {}", widened);
  if (!device.is_gpu() && host_has_gpus()) log_info("this host has GPUs, which are not used: device is cpu");
}

/// How a set is read that is not held in memory.
void log_streams(std::string_view name, const Dataset& data) {
  for (const DatasetPart& input : data.inputs())
    if (const SampleStream* const stream = input.data->stream())
      log_info(
          "{} data: {} samples, read while they are used, {} at a time; {:.3g} of {:.3g} MB are in memory",
          data.single() != nullptr ? std::string(name) : fmt::format("{}, input {}", name, input.name),
          input.data->size(), stream->grid().block_samples(),
          static_cast<double>(stream->memory_bytes()) * 1e-6,
          static_cast<double>(input.data->size_bytes()) * 1e-6);
}

/// The samples of a block, if it is more than what a file system reads for one sample; otherwise 0.
std::int64_t samples_read_for_one(const Dataset& data) {
  constexpr std::int64_t kLittle = 16384;
  std::int64_t most = 0;
  for (const DatasetPart& input : data.inputs()) {
    if (input.data->stream() == nullptr) continue;
    const std::int64_t block = input.data->stream()->grid().block_samples();
    if (block > 1 && block * (input.data->size_bytes() / input.data->size()) > kLittle)
      most = std::max(most, block);
  }
  return most;
}

void log_run(RunContext& context, const Training& training) {
  const Trainer& trainer = *training.trainer;
  const std::int64_t frozen = context.model().variables->num_frozen_parameters();
  log_info("{} parameters{}, {} samples, batch {} in {}; the configuration as run is {}/config.yaml",
           context.model().variables->num_parameters(),
           frozen > 0 ? fmt::format(" to train, {} frozen", frozen) : "", context.train_set().num_chosen(),
           training.plan.spec().batch_size, shards_text(context.shards(), context.config().train.accumulate),
           training.session->context().run_dir());
  if (const std::string text =
          default_shards_text(context.config(), context.shards(),
                              std::int64_t{context.world().size()} *
                                  context.config().general.threads.value_or(context.cores_per_rank()));
      trainer.global_step() == 0 && !text.empty())
    log_info("{}", text);
  for (const std::string& note : bad_records_notes(context.train_data()))
    log_warning("training set: {} (bad_records.csv)", note);
  if (context.eval_data() != nullptr)
    for (const std::string& note : bad_records_notes(*context.eval_data()))
      log_warning("evaluation set: {} (bad_records.csv)", note);
  log_streams("training", context.train_data());
  if (context.eval_data() != nullptr) log_streams("evaluation", *context.eval_data());
  if (const std::int64_t block = samples_read_for_one(context.train_data());
      context.config().train.shuffle == Shuffle::samples && block > 0)
    log_warning(
        "train.shuffle: true takes samples from all over the files, and for each of them {} samples are "
        "read, which are stored together: write shuffle: blocks, or raise data.memory_gb",
        block);
  if (const std::string warning = one_value_statistics(*context.model().graph, training.plan);
      !warning.empty())
    log_warning("{}", warning);
  for (const std::string& warning : warnings_of_run(context.config(), *context.model().graph, training.clock))
    log_warning("{}", warning);
  if (const std::string text =
          recomputation_text(context.config().train.recompute, trainer.executor().calls(),
                             training.plan.distinct_shard_sizes().back());
      !text.empty())
    log_info("recomputation: {}", text);
  if (const std::string warning = rounds_save_nothing(trainer.executor().calls(), context.device().is_gpu(),
                                                      context.config().train.accumulate);
      !warning.empty())
    log_warning("{}", warning);
  if (const std::string warning = noise_scale_warning(trainer.executor().calls());
      context.config().gradients.noise_scale && !warning.empty())
    log_warning("{}", warning);
  if (const Executor& executor = trainer.executor(); context.device().is_gpu() && executor.num_lanes() > 1)
    log_info(
        "{} microshards at a time on the GPU of rank 0; each after the first takes {:.2f} MB (gpu.branches)",
        executor.num_lanes(), static_cast<double>(executor.branch_bytes()) * 1e-6);
  if (trainer.sums().reducer().shares_memory())
    log_info("gradients: summed in memory that all ranks of this host see");
  else if (const std::string& reason = trainer.sums().reducer().why_not_shared(); !reason.empty())
    log_info("gradients: sent as messages, not summed in shared memory: {}", reason);
  if (const Gating wanted = context.config().optimizer.gating; wanted != Gating::graph)
    log_info("{}", trainer.gating() == wanted
                       ? fmt::format("optimizer.gating: {}: variables are updated beside the backward pass",
                                     name_of(wanted))
                       : fmt::format("optimizer.gating is graph, not {}: {}", name_of(wanted),
                                     trainer.gating_reason()));
  if (const ServerTraining* const servers = trainer.servers(); servers != nullptr) {
    const ClusterOptions& cluster = context.config().cluster;
    log_info("{}", servers_text(cluster, *context.model().variables, servers->layout().places,
                                servers->layout().placed_by_program));
    if (servers->is_alone())
      log_info("one rank is worker and server at once");
    else if (context.config().section("cluster").has("tasks"))
      log_info("servers are rank{} {}", servers->layout().servers == 1 ? "" : "s",
               fmt::join(servers->layout().server_ranks, ", "));
    std::vector<std::string> tables;
    for (const Variable& variable : context.model().variables->variables())
      if (TableRows::holds(variable)) tables.push_back(variable.name);
    if (!tables.empty() && !servers->is_alone())
      log_info("gradients of {} travel to their server as rows, where a part touches few", name_list(tables));
    log_info("a batch has {} of {}, for {}", counted(servers->layout().parts(), "part"),
             counted(servers->layout().part_shards, "microshard"),
             counted(servers->layout().workers(), "worker"));
  }
  if (trainer.global_step() > 0)
    log_info("continuing at step {}, epoch {}, sample {} of it, from {}", trainer.global_step(),
             trainer.cursor().epoch + 1, trainer.cursor().samples_consumed, training.manager->found().path);
}

void log_transports(const std::vector<std::string>& lines, const std::vector<std::string>& hosts) {
  if (lines.empty()) return;
  for (const std::string& line : lines) log_info("messages {}", line);
  constexpr double kSoonSeconds = 60;
  const bool one_host = std::ranges::all_of(hosts, [&](const std::string& h) { return h == hosts.front(); });
  const auto seconds = launcher_notices_after_seconds();
  if (!one_host && seconds && *seconds > kSoonSeconds)
    log_info(
        "a host that is cut off ends these ranks in time, but mpirun itself only after {:.0f} s or more: "
        "docs/hosts.md says how to shorten that",
        *seconds);
}

/// Samples that are set aside for an evaluation set that the configuration does not have.
std::string unused_held_out(const Config& config) {
  const ChoiceOptions& choice = config.data.train_choice;
  const bool is_holdout = choice.part == ChoiceOptions::Part::holdout;
  if (config.data.eval || (!is_holdout && choice.part != ChoiceOptions::Part::fold)) return {};
  return fmt::format(
      "data.{} sets {} of the samples aside, and nothing evaluates them: add `eval: {{}}` to section data "
      "(--set data.eval={{}})",
      is_holdout ? "holdout" : "folds",
      is_holdout ? fmt::format("{:.4g} %", 100 * choice.holdout)
                 : fmt::format("1 of {} parts", choice.folds));
}

}  // namespace

std::vector<std::string> warnings_of_run(const Config& config, const Graph& graph, const RunClock& clock) {
  std::optional<AverageRule> average;
  if (config.average) average = config.average->resolved(clock);
  std::vector<std::string> warnings = young_averages(
      graph, average, {.steps = config.train.total_steps(clock), .warm = config.warm_start.has_value()});
  if (std::string unused = unused_held_out(config); !unused.empty()) warnings.push_back(std::move(unused));
  return warnings;
}

/// Where the run continues with other batches or epochs.
void log_clock(const Training& training, const Config& config) {
  const RunClock& clock = training.clock;
  const std::int64_t step = training.manager->found().header.global_step;
  if (step == 0 || clock.changed_at() != step) return;
  log_info(
      "from step {} on an epoch has {} steps of {} samples: {:.4g} epochs are done, and the run ends after "
      "step {}",
      step, clock.shape().steps, clock.shape().batch, clock.epochs(step), config.train.total_steps(clock));
}

void log_training_start(RunContext& context, const Training& training) {
  const std::vector<std::string> transports = describe_transports(context.world(), context.hosts());
  if (!context.is_chief()) return;
  log_clock(training, context.config());
  log_machine(context, *training.trainer);
  log_run(context, training);
  log_transports(transports, context.hosts());
}

void log_training_end(RunContext& context, const Trainer& trainer) {
  if (!context.is_chief()) return;
  if (const ServerTraining* const servers = trainer.servers();
      servers != nullptr && servers->versions_pulled() > 0)
    log_info(
        "servers: of {} versions of the variables, {} had come when rank 0 needed them; it sent {:.3g} MB in "
        "a step",
        servers->versions_pulled(), servers->versions_ahead(),
        static_cast<double>(trainer.bytes_sent_per_step()) * 1e-6);
  if (context.device().is_gpu())
    log_info("GPU memory: at most {:.2f} MB at a time on rank 0",
             static_cast<double>(context.device().device.peak_bytes()) * 1e-6);
}

std::string gating_text(const Config& config, const Model& model, const Optimizer& optimizer, bool is_gpu) {
  const Gating wanted = config.optimizer.gating;
  if (wanted == Gating::graph) return {};
  const std::string reason = GatingNeeds{.on_host = !is_gpu,
                                         .scales_loss = config.precision.loss_scale.used(),
                                         .regularizes = !model.regularization.empty(),
                                         .shares_update = config.optimizer.shard || config.cluster.used(),
                                         .clip = config.gradients,
                                         .optimizer = optimizer}
                                 .why_graph();
  if (!reason.empty()) return fmt::format("graph, not {}: {}", name_of(wanted), reason);
  return fmt::format("{}: variables are updated beside the backward pass", name_of(wanted));
}

}  // namespace lockstep
