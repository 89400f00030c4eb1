// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep check`: the checks that `lockstep train` makes before its first step (setup/training_check.h);
// prints the layer table, memory and bytes per step. Runs nothing and writes nothing.
#include "driver/commands/commands.h"

#include <algorithm>

#include "comm/error_feedback.h"
#include "comm/self_communicator.h"
#include "comm/tree.h"
#include "config/yaml_node.h"
#include "core/cpu.h"
#include "core/process_environment.h"
#include "data/reader_dataset.h"
#include "driver/commands/experiment_text.h"
#include "driver/commands/recorded_text.h"
#include "io/atomic_file.h"
#include "model/memory_plan.h"
#include "run/sections/tf_config.h"
#include "run/setup/compute_device.h"
#include "run/setup/data_trial.h"
#include "run/setup/normalize_sets.h"
#include "run/setup/run_changes.h"
#include "run/setup/run_size.h"
#include "run/setup/server_check.h"
#include "run/setup/train_setup.h"
#include "run/setup/training_check.h"
#include "run/setup/training_directory.h"
#include "run/setup/training_log.h"
#include "run/setup/widened_products.h"
#include "tools/samples/length_statistics.h"
#include "train/evaluation.h"
#include "train/one_value_statistics.h"
#include "train/rounds_in_flight.h"
#include "train/step_update.h"
#include "train/trainer.h"
#include "train/trainer_options.h"
#include "view/plot/schedule_plot.h"

namespace lockstep {

namespace {

/// Where activations are held in 16 bits, with the type of each layer's, and of its products if they are in
/// another one. The layers were prepared.
void print_layers(const Model& model, const Graph::Calls& calls) {
  const bool typed = model.graph->activation_type() != DType::f32;
  const bool frozen = model.variables->num_frozen_parameters() > 0;
  const auto counts = [&](auto trainable, auto kept) {
    return frozen ? fmt::format("{:>12} {:>12}", trainable, kept) : fmt::format("{:>12}", trainable);
  };
  fmt::print("{:<20} {:<16} {:>14} {} {:>14}{}\n", "layer", "kind", "output",
             counts(frozen ? "trainable" : "parameters", "frozen"), "MFLOP/sample", typed ? "  type" : "");
  fmt::print("{:<20} {:<16} {:>14} {} {:>14}{}\n", "features", "", model.graph->features().to_string(),
             counts("", ""), "", typed ? "  float32" : "");
  const auto typed_as = [](const Graph::Node& node, DType type) {
    return fmt::format("  {}{}", name_of(type),
                       node.layer->traits().widened_products.empty() ? "" : ", products in float32");
  };
  const std::span<const Graph::Node> nodes = model.graph->nodes();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const Graph::Node& node = nodes[i];
    std::string kind = node.layer->kind();
    if (node.fused_into >= 0) kind += " (fused)";
    const auto value = static_cast<std::size_t>(calls.node_values[i].front());
    fmt::print("{:<20} {:<16} {:>14} {} {:>14.3f}{}\n", node.layer->name(), kind, node.outputs[0].to_string(),
               counts(node.parameters, node.frozen_parameters), node.layer->traits().flops_per_sample / 1e6,
               typed ? typed_as(node, calls.values[value].type) : "");
  }
  fmt::print("{:<20} {:<16} {:>14} {} {:>14.3f}\n\n", "total", "", "",
             counts(model.variables->num_parameters(), model.variables->num_frozen_parameters()),
             model.graph->flops_per_sample() / 1e6);
}

/// A configuration for GPUs may be checked where there are none, on a login node for one: then on the CPU,
/// where nothing is computed and large blocks take no memory.
ComputeDevice device_here(const Config& config, std::string& no_gpu) {
  try {
    const ComputeDevice device = open_device(config, 0);
    if (device.is_gpu()) return device;
    return {cpu_device_for_plans(), device.kernels, -1, {}};
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::config) throw;
    no_gpu = error.what_happened();
    return {cpu_device_for_plans(), cpu_kernels(), -1, {}};
  }
}

/// The run that training would continue. Throws what training throws if it cannot.
FoundCheckpoint run_in(const std::string& run_dir, const Config& config) {
  SelfCommunicator self;
  const FoundCheckpoint found = checkpoint_to_resume(self, Resume::automatic, config, run_dir);
  changes_of_run(self, config, found, run_dir, false);
  return found;
}

/// What rules that compute whole matrices need beside slots, on one rank with one thread.
struct MatrixMemory {
  std::size_t work = 0, state = 0;  ///< bytes; the state is divided among the ranks

  void add(const MatrixWork& matrices, bool owned) {
    work += matrices.memory_bytes() - (owned ? matrices.state_bytes() : 0);
    state += matrices.state_bytes();
  }
};

/// Makes what training makes on one rank with one thread: an evaluation, and a trainer if `with_trainer` is
/// set, so that the memory of a GPU is no guess.
MatrixMemory make_parts(const ComputeDevice& device, const DataAndModel& parts, const Config& config,
                        const StepPlan& plan, Optimizer& optimizer, bool with_trainer) {
  SelfCommunicator self;
  Workers workers(1, device.device);
  const Model& model = parts.model;
  MatrixMemory memory;
  const ExecutorContext context{*model.graph,
                                *model.variables,
                                *model.heads,
                                device.kernels,
                                device.device,
                                workers.pool(),
                                workers.lanes(),
                                self,
                                nullptr,
                                static_cast<int>(plan.spec().shards),
                                0};
  if (with_trainer) {
    TrainerOptions options;
    if (config.average) options.average = config.average->resolved(plan.steps_per_epoch());
    const Trainer trainer(context, self, self, *parts.train, plan, optimizer, options);
    workers.grow_scratch(trainer.executor().scratch_bytes());
    for (const auto& matrices : trainer.update().matrices()) memory.add(matrices->work(), true);
  } else {
    for (const MatrixWork* const work : optimizer.all_matrix_work(
             {*model.variables, device.kernels, device.device, workers.pool(), workers.lanes()}))
      memory.add(*work, false);
  }
  if (parts.eval)
    const Evaluation evaluation(context, self, parts.eval, config.evaluation_batch_size(),
                                bind_metrics(config.eval.metrics, *model.heads, *model.graph, parts.eval));
  return memory;
}

/// What is printed of a run beside its layers. References outlive it.
struct Sizes {
  const DataAndModel& parts;
  const Optimizer& optimizer;
  const StepPlan& plan;
  const Graph::Calls& calls;
  const std::optional<AverageOptions>& average;
  std::int64_t rounds;
  bool on_device, shard, noise_scale, compress;
  std::size_t residuals;  ///< bytes of error feedback, of all ranks together
  MatrixMemory matrices;
  std::vector<std::string> sources;  ///< that are mixed
  std::string servers;               ///< what they hold; empty: none
  std::string gating;                ///< empty: graph

  std::int64_t shards() const { return plan.spec().shards; }
  const VariableStore& variables() const { return *parts.model.variables; }
  double dense_bytes() const { return 4.0 * static_cast<double>(variables().dense_elements()); }
};

constexpr double kMegabytes = 1e-6;  // per byte

std::string chosen_text(const UsedDataset& data) {
  return data.use().choice == nullptr ? fmt::format("{}", data->size())
                                      : fmt::format("{} of {}", data.num_chosen(), data->size());
}

/// The samples of the first classes, and how often they are in an epoch.
std::string classes_text(const ClassQuotas& quotas, const std::vector<std::string>& sources) {
  constexpr std::size_t kShown = 20;
  const ClassLists& lists = quotas.lists();
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < std::min(kShown, lists.size()); ++i)
    texts.push_back(fmt::format("{}: {} of {}",
                                sources.empty() ? std::to_string(lists.labels()[i]) : sources[i],
                                quotas.quota(i), lists.samples(i).size()));
  if (lists.size() > kShown) texts.push_back(fmt::format("and {} more", lists.size() - kShown));
  return fmt::format("{}", fmt::join(texts, ", "));
}

/// "8x8x1 uint8", or each of several inputs, and targets.
std::string form_text(const Dataset& data) {
  const auto texts_of = [](const std::vector<DatasetPart>& sets) {
    std::vector<std::string> texts;
    for (const DatasetPart& set : sets)
      texts.push_back(fmt::format("{}{}{} {}", set.name, set.name.empty() ? "" : " ",
                                  set.data->feature_shape().to_string(), name_of(set.data->feature_dtype())));
    return fmt::format("{}", fmt::join(texts, ", "));
  };
  return texts_of(data.inputs()) +
         (data.targets().empty() ? "" : fmt::format("; targets: {}", texts_of(data.targets())));
}

void print_bad_records(const Dataset& data) {
  for (const std::string& note : bad_records_notes(data)) fmt::print("bad records       {}\n", note);
}

void print_data(const Sizes& sizes) {
  const UsedDataset &train = sizes.parts.train, &eval = sizes.parts.eval;
  fmt::print("training set      {} samples of {}\n", chosen_text(train), form_text(*train));
  print_bad_records(*train);
  if (train.use().quotas != nullptr)
    fmt::print("in an epoch       {} ({}: uses of samples)\n",
               classes_text(*train.use().quotas, sizes.sources), sizes.sources.empty() ? "class" : "source");
  if (train.use().buckets != nullptr) fmt::print("length buckets    {}\n", bucket_line(sizes.plan));
  if (!sizes.calls.casts.empty()) {
    std::vector<std::string> names;
    for (const auto& cast : sizes.calls.casts) names.push_back(cast->name());
    fmt::print("casts             {}\n", fmt::join(names, ", "));
  }
  const Graph& graph = *sizes.parts.model.graph;
  if (const std::string widened = widened_products(graph); !widened.empty())
    fmt::print("float32 products  {}\n", widened);
  if (eval) {
    fmt::print("evaluation set    {} samples\n", chosen_text(eval));
    print_bad_records(*eval);
  }
  fmt::print("batch             {} samples in {}, {} steps per epoch\n", sizes.plan.spec().batch_size,
             shards_text(sizes.shards(), sizes.rounds), sizes.plan.steps_per_epoch());
  if (const std::string one_value = one_value_statistics(graph, sizes.plan); !one_value.empty())
    fmt::print("warning           {}\n", one_value);
}

/// Returns the bytes that a rank sends of the sparse gradients of a step.
double print_variables(const Sizes& sizes) {
  const double parameters = 4.0 * static_cast<double>(sizes.variables().trainable_elements());
  const std::size_t slots = sizes.optimizer.slot_names().size();
  fmt::print("variables         {:.2f} MB, gradients {:.2f} MB or more, {} slots {:.2f} MB\n",
             parameters * kMegabytes, sizes.dense_bytes() * kMegabytes, slots,
             parameters * kMegabytes * static_cast<double>(slots));
  if (sizes.shard && slots > 0)
    fmt::print("sharded           the update: of R ranks, each holds 1/R of the slots of dense variables\n");
  if (!sizes.servers.empty()) fmt::print("servers           {}\n", sizes.servers);
  if (sizes.residuals > 0)
    fmt::print("error feedback    {:.2f} MB of residuals, divided among the ranks\n",
               static_cast<double>(sizes.residuals) * kMegabytes);
  if (const MatrixMemory& memory = sizes.matrices; memory.work > 0) {
    const std::string state =
        memory.state == 0 ? ""
                          : fmt::format(", and {:.2f} MB of statistics and roots, divided among the ranks",
                                        static_cast<double>(memory.state) * kMegabytes);
    fmt::print("whole matrices    {:.2f} MB of work memory with one thread{}\n",
               static_cast<double>(memory.work) * kMegabytes, state);
  }
  for (const Optimizer::Described& part : sizes.optimizer.describe_all(sizes.variables())) {
    fmt::print("update            {}\n", part.rule);
    if (!part.variables.empty()) fmt::print("                  of {}\n", fmt::join(part.variables, ", "));
  }
  if (!sizes.gating.empty()) fmt::print("gating            {}\n", sizes.gating);
  if (sizes.average)
    fmt::print("moving average    {:.2f} MB: {}\n", parameters * kMegabytes,
               sizes.average->resolved(sizes.plan.steps_per_epoch()).describe());
  double sparse = 0;
  for (const VariableId id : sizes.variables().sparse()) {
    const Variable& table = sizes.variables()[id];
    const std::int64_t rows =
        table.row_bound->per_sample * sizes.plan.spec().batch_size + table.row_bound->per_step;
    const double bytes = 4.0 * static_cast<double>(rows) *
                         (1 + static_cast<double>(table.shape.num_elements() / table.shape[0]));
    sparse += sizes.compress ? 4.0 * static_cast<double>(rows) + (bytes - 4.0 * static_cast<double>(rows)) / 2
                             : bytes;
    fmt::print("sparse gradient   {}: at most {} of {} rows in a step, {:.2f} MB\n", table.name, rows,
               table.shape[0], bytes * kMegabytes);
  }
  return sparse;
}

void print_memory(const Sizes& sizes) {
  const std::int64_t largest = sizes.plan.distinct_shard_sizes().back();
  const double megabytes =
      static_cast<double>(MemoryPlan(sizes.calls, true, largest).total_bytes()) * kMegabytes;
  fmt::print("activations       {:.2f} MB per microshard; {}\n", megabytes,
             in_flight_text(sizes.calls, sizes.on_device, megabytes, sizes.shards()));
  if (const std::string warning = rounds_save_nothing(sizes.calls, sizes.on_device, sizes.rounds);
      !warning.empty())
    fmt::print("warning           {}\n", warning);
  if (const std::string warning = noise_scale_warning(sizes.calls); sizes.noise_scale && !warning.empty())
    fmt::print("warning           {}\n", warning);
  std::int64_t all = 0, in_memory = 0;
  for (const Dataset* const data : {sizes.parts.train.get(), sizes.parts.eval.get()}) {
    if (data == nullptr) continue;
    all += data->size_bytes();
    in_memory += data->memory_bytes();
  }
  fmt::print("data in memory    {:.2f} MB on every rank{}\n", static_cast<double>(in_memory) * kMegabytes,
             in_memory < all ? fmt::format(" of {:.2f} MB; the rest is read while it is used",
                                           static_cast<double>(all) * kMegabytes)
                             : "");
}

void print_messages(const Sizes& sizes, double sparse_bytes) {
  // To the owner of a part as a sum, and from it as the total, or as variables where it updates them.
  const double ways = !sizes.compress ? 2 : sizes.shard ? 1.5 : 1;
  for (std::int64_t ranks = 2; ranks <= sizes.shards(); ranks *= 2)
    fmt::print("sent per step     {:.2f} MB by each of {} ranks for the gradients\n",
               static_cast<double>(ranks - 1) / static_cast<double>(ranks) *
                   (ways * sizes.dense_bytes() + sparse_bytes) * kMegabytes,
               ranks);
}

void print_gpu_memory(const ComputeDevice& device, const std::string& no_gpu) {
  if (device.is_gpu())
    fmt::print("GPU memory        {:.2f} MB for training on one rank, of {:.0f} MB of {}\n",
               static_cast<double>(device.device.peak_bytes()) * kMegabytes,
               static_cast<double>(device.description.memory_bytes) * kMegabytes, device.description.name);
  if (!no_gpu.empty()) fmt::print("GPU memory        not known here: {}\n", no_gpu);
}

void plot_schedules(const CheckArguments& arguments, const RunSchedules& schedules, const ScheduleRun& run) {
  const std::vector<Chart> charts = schedule_charts(schedules, run);
  if (arguments.schedule_svg.empty()) return print_charts(charts);
  write_file_atomically(arguments.schedule_svg,
                        svg_charts(charts, fmt::format("Schedules of {}", arguments.config)));
  fmt::print("schedules         drawn in {}\n", arguments.schedule_svg);
}

}  // namespace

int run_command(const CheckArguments& arguments) {
  Config config = load_config(arguments.config, arguments.overrides);
  if (arguments.expand) {
    fmt::print("{}", to_yaml(config.model.section.node("layers")));
    return 0;
  }
  constexpr const char* kTfConfig = "TF_CONFIG";
  const Params& cluster = config.section("cluster");
  if (tasks_are_in_tf_config(cluster) && std::getenv(kTfConfig) == nullptr)
    fmt::print("cluster           TF_CONFIG is not set here: servers are not checked\n");
  else
    resolve_tf_config(config.cluster, cluster, process_environment);
  try_data_on_chief(config);
  const std::string run_dir =
      arguments.run_dir.empty() ? default_run_directory(arguments.config) : arguments.run_dir;
  check_run_directory(run_dir);
  const FoundCheckpoint found = arguments.run_dir.empty() ? FoundCheckpoint{} : run_in(run_dir, config);
  std::string no_gpu;
  const ComputeDevice device = device_here(config, no_gpu);
  OpenedData opened = open_data(config, true, true);
  for (auto* const sets : {&opened.train, &opened.eval})
    if (*sets) (*sets)->find_bad();
  const RunNeeds needs{.train = true, .eval = true, .updates = true};
  DataAndModel parts = read_data(config, needs, std::move(opened));
  if (SelfCommunicator self; !knows_shapes(parts))
    normalize_sets(self, parts.train, parts.eval, found.exists() ? run_dir : "", cores_per_rank(1));
  add_model(parts, config, device.device, needs, no_gpu.empty() ? device.memory_bytes(1) : 0);
  const Model& model = parts.model;
  const RunNames known = run_names(config, model, parts.train, parts.eval);
  check_names(config, known);
  if (config.warm_start && !found.exists()) open_warm_start(*config.warm_start, *model.variables);
  const auto optimizer = config.optimizer.make();
  check_shard(config, *optimizer, device.is_gpu(), false);
  check_compress(config, *model.variables, device.is_gpu());
  check_servers(config, model, *optimizer, device.is_gpu(), false);
  optimizer->create_slots(device.device, *model.variables);
  const auto shards_of_run = found.exists() ? std::optional(found.header.shards) : std::nullopt;
  const int shards = choose_shards(config, shards_of_run, device.is_gpu() ? 1 : cores_per_rank(1));
  check_noise_scale(config, *model.variables, shards);
  const StepPlan plan({.num_samples = parts.train->size(),
                       .batch_size = config.train.batch_size,
                       .shards = shards,
                       .seed = 0,
                       .shuffle = parts.train.use().quotas != nullptr || parts.train.use().buckets != nullptr
                                      ? Shuffle::samples
                                      : Shuffle::none,
                       .last_batch = config.train.last_batch,
                       .choice = parts.train.use().choice,
                       .repeat = config.data.train_choice.repeat,
                       .quotas = parts.train.use().quotas,
                       .buckets = parts.train.use().buckets,
                       .mixing = parts.train.use().mixing});
  RunSchedules schedules(*optimizer, *model.graph, config.average);
  check_schedules(config, schedules, known);
  begin_schedules(config, plan, schedules, true);
  const MatrixMemory matrices = make_parts(device, parts, config, plan, *optimizer, device.is_gpu());
  const std::size_t residuals =
      config.comm.error_feedback
          ? static_cast<std::size_t>(ErrorFeedback::num_nodes(shards) * model.variables->dense_elements()) *
                ErrorFeedback::kElementBytes
          : 0;
  check_room(config, run_dir, *model.variables, *optimizer, matrices.state + residuals);
  const std::vector<std::int64_t> sample_counts = plan.distinct_shard_sizes();
  const Graph::Calls calls = model.graph->prepare({.kernels = device.kernels,
                                                   .device = device.device,
                                                   .lanes = 1,
                                                   .training = true,
                                                   .sample_counts = sample_counts,
                                                   .wants_input_gradient = {},
                                                   .shards = shards});
  print_layers(model, calls);
  std::vector<std::string> sources;
  for (const DataSource& source : config.data.sources) sources.push_back(source.name);
  const Sizes sizes{
      parts,
      *optimizer,
      plan,
      calls,
      config.average,
      config.train.accumulate,
      config.general.device != "cpu",
      config.optimizer.shards(),
      config.gradients.noise_scale,
      config.comm.compress,
      residuals,
      matrices,
      sources,
      config.cluster.used()
          ? servers_text(config.cluster, *model.variables,
                         server_places(config.cluster, {placement_rules(cluster)}, *model.variables))
          : "",
      gating_text(config, model, *optimizer, device.is_gpu())};
  print_data(sizes);
  const ScheduleRun run = schedule_run(config, plan);
  fmt::print("{}", schedule_summary(schedules, run));
  const double sparse_bytes = print_variables(sizes);
  print_memory(sizes);
  print_messages(sizes, sparse_bytes);
  fmt::print("{}{}", recorded_text(config, parts, known), experiment_text(config, known));
  print_gpu_memory(device, no_gpu);
  if (arguments.plot_schedule) plot_schedules(arguments, schedules, run);
  fmt::print("The configuration is good.\n");
  return 0;
}

}  // namespace lockstep
