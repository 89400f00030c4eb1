// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep check`: the checks that `lockstep train` makes before its first step (setup/training_check.h);
// prints the layer table, memory and bytes per step. Runs nothing and writes nothing, but for the trial of
// --overfit-batch (overfit_batch.cpp), which writes nothing, either.
#include "driver/commands/check.h"

#include <fmt/format.h>

#include <algorithm>

#include "comm/environment.h"
#include "comm/error_feedback.h"
#include "comm/self_communicator.h"
#include "comm/tree.h"
#include "config/yaml_node.h"
#include "core/cpu.h"
#include "core/error.h"
#include "core/log.h"
#include "core/message_lines.h"
#include "core/process_environment.h"
#include "driver/command_line/command.h"
#include "driver/command_line/common_options.h"
#include "driver/commands/check_report.h"
#include "driver/commands/experiment_text.h"
#include "driver/commands/recorded_text.h"
#include "io/atomic_file.h"
#include "io/print_result.h"
#include "run/sections/tf_config.h"
#include "run/setup/balance_classes.h"
#include "run/setup/clock_of_run.h"
#include "run/setup/compute_device.h"
#include "run/setup/data_trial.h"
#include "run/setup/first_batch.h"
#include "run/setup/normalize_sets.h"
#include "run/setup/run_changes.h"
#include "run/setup/run_model.h"
#include "run/setup/run_plan.h"
#include "run/setup/run_size.h"
#include "run/setup/train_setup.h"
#include "run/setup/training_check.h"
#include "run/setup/training_directory.h"
#include "run/setup/training_log.h"
#include "train/evaluation.h"
#include "train/step_update.h"
#include "train/trainer.h"
#include "train/trainer_options.h"
#include "view/plot/schedule_plot.h"

namespace lockstep {

namespace {

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

/// The run that training would continue.
struct RunInFolder {
  FoundCheckpoint found;
  RunChanges changes;
};

/// Throws what training throws if it cannot continue the run.
RunInFolder run_in(const std::string& run_dir, Config& config, bool accept_changes) {
  SelfCommunicator self;
  RunInFolder run;
  run.found = checkpoint_to_resume(self, Resume::automatic, config, run_dir);
  run.changes = changes_of_run(self, config, run.found, run_dir, accept_changes);
  if (!run.changes.accepted.empty()) log_warning("{}", MessageLines{run.changes.accepted});
  return run;
}

/// The data sets as training has them, as far as no sample needs to be read that does not fit into memory.
RunData data_of(const Config& config, const RunNeeds& needs) {
  OpenedData opened = open_data(config, true, true);
  for (auto* const sets : {&opened.train, &opened.eval})
    if (*sets) (*sets)->find_bad();
  RunData data = read_data(config, needs, std::move(opened));
  if (SelfCommunicator self; !data.knows_shapes() || data.train->streams().empty())
    normalize_sets(self, data.train, data.eval, needs.kept_in, cores_per_rank(1), needs.kept.get());
  return data;
}

struct PartsMemory {
  MatrixMemory matrices;
  std::optional<int> branches;  ///< with a trainer
  std::size_t branch_bytes = 0;
};

/// Makes what training makes on one rank with one thread: an evaluation, and a trainer if `with_trainer` is
/// set, so that the memory of a GPU is no guess.
PartsMemory make_parts(const ComputeDevice& device, const RunData& data, const Model& model,
                       const Config& config, const StepPlan& plan, Optimizer& optimizer, bool with_trainer) {
  SelfCommunicator self;
  Workers workers(1, device.device);
  PartsMemory memory;
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
    options.reducer.sum = gradient_sum(config.comm, device.is_gpu(), nullptr);
    options.branches = config.gpu.branches;
    if (config.average) options.average = config.average->resolved(RunClock(epoch_shape(plan)));
    const Trainer trainer(context, self, self, *data.train, plan, optimizer, options);
    const Executor& executor = trainer.executor();
    workers.grow_scratch(executor.scratch_bytes(), executor.num_lanes());
    memory.branches = executor.num_lanes();
    memory.branch_bytes = executor.branch_bytes();
    for (const auto& matrices : trainer.update().matrices()) memory.matrices.add(matrices->work(), true);
  } else {
    for (const MatrixWork* const work : optimizer.matrix_work(
             {*model.variables, device.kernels, device.device, workers.pool(), workers.lanes()}))
      memory.matrices.add(*work, false);
  }
  if (data.eval)
    const Evaluation evaluation(context, self, data.eval, config.evaluation_batch_size(),
                                bind_metrics(config.eval.metrics, *model.heads, *model.graph, data.eval));
  return memory;
}

void plot_schedules(const CheckArguments& arguments, const RunSchedules& schedules, const ScheduleRun& run) {
  const std::vector<Chart> charts = schedule_charts(schedules, run);
  if (arguments.schedule_svg.empty()) return print_charts(charts);
  write_file_atomically(arguments.schedule_svg,
                        svg_charts(charts, fmt::format("Schedules of {}", arguments.config)));
  print_result("schedules         drawn in {}\n", arguments.schedule_svg);
}

void declare(CommandOptions& options, CheckArguments& arguments) {
  options.add("CONFIG", arguments.config, "Configuration file (YAML); required")
      .type_name("")
      .check(not_empty("a path"));
  auto& plot = options.keep<std::optional<std::string>>();
  options
      .add_with_optional_value(
          "--plot-schedule", plot,
          "Draw the learning rate and all other numbers that follow a schedule, in the terminal or as SVG")
      .type_name("[FILE.svg]");
  options.add_flag("--expand", arguments.expand,
                   "Print the layers that blocks and repeats stand for, as YAML");
  auto& steps = options.keep<std::optional<std::int64_t>>();
  options.add_flag(
      "--overfit-batch", arguments.overfit_batch,
      "Then train on the first batch alone, and say whether its loss falls to about 0 (exit code 1: it "
      "does not); leaves no run behind, and may be started by mpirun");
  options.add("--overfit-steps", steps, "With --overfit-batch: steps at most; default: 200")
      .type_name("N")
      .check(whole_number(1, kMostSteps));
  add_run_dir(options, arguments.run_dir,
              "Also check that the run in this directory can be continued with the configuration");
  add_accept_changes(options, arguments.accept_changes);
  add_overrides(options, arguments.overrides);
  options.after_parsing([&arguments, &plot, &steps] {
    constexpr const char* kSeeHelp = "See: lockstep check --help";
    if (steps && !arguments.overfit_batch)
      throw usage_error("check: --overfit-steps needs --overfit-batch", kSeeHelp);
    if (arguments.accept_changes && arguments.run_dir.empty())
      throw usage_error("check: --accept-changes needs --run-dir", kSeeHelp);
    if (arguments.overfit_batch && arguments.expand)
      throw usage_error("check: --overfit-batch does not go with --expand", kSeeHelp);
    arguments.overfit_steps = steps.value_or(arguments.overfit_steps);
    arguments.plot_schedule = plot.has_value();
    arguments.schedule_svg = plot.value_or("");
    // `check --plot-schedule CONFIG`: the file of the option may be left out.
    if (arguments.config.empty() && !arguments.schedule_svg.ends_with(".svg"))
      std::swap(arguments.config, arguments.schedule_svg);
    if (arguments.config.empty()) throw usage_error("check: CONFIG is required", kSeeHelp);
    if (!arguments.schedule_svg.empty() && !arguments.schedule_svg.ends_with(".svg"))
      throw usage_error("check: --plot-schedule: the name of the file must end with .svg", kSeeHelp);
  });
}

int check(const CheckArguments& arguments) {
  Config config = load_config(arguments.config, arguments.overrides);
  if (arguments.expand) {
    print_as_is(to_yaml(config.model.layers));
    return 0;
  }
  constexpr const char* kTfConfig = "TF_CONFIG";
  const Params& cluster = config.section("cluster");
  if (tasks_are_in_tf_config(cluster) && std::getenv(kTfConfig) == nullptr)
    print_result("cluster           TF_CONFIG is not set here: servers are not checked\n");
  else
    resolve_tf_config(config.cluster, cluster, process_environment);
  try_data_on_chief(config);
  const std::string run_dir =
      arguments.run_dir.empty() ? default_run_directory(arguments.config) : arguments.run_dir;
  check_run_directory(run_dir);
  const RunInFolder before =
      arguments.run_dir.empty() ? RunInFolder{} : run_in(run_dir, config, arguments.accept_changes);
  const FoundCheckpoint& found = before.found;
  std::string no_gpu;
  const ComputeDevice device = device_here(config, no_gpu);
  const RunNeeds needs{.train = true,
                       .eval = true,
                       .updates = true,
                       .kept_in = found.exists() ? run_dir : "",
                       .kept = found.header.kept};
  const RunData data = data_of(config, needs);
  std::unique_ptr<Optimizer> made = config.optimizer.make();
  const Model model =
      model_for(data, config, made.get(), device.device, needs, no_gpu.empty() ? device.memory_bytes(1) : 0);
  if (SelfCommunicator self; data.train->streams().empty())
    balance_classes(self, *model.heads, data.train, needs, device.device);
  if (found.exists() && !arguments.accept_changes)
    require_data_of_run(config, run_dir, found.header.global_step,
                        {data.train->fingerprint(), data.eval ? data.eval->fingerprint() : std::string()},
                        before.changes);
  const auto shards_of_run = found.exists() ? std::optional(found.header.shards) : std::nullopt;
  const RunPlan planned = plan_run(config, model, data.train, data.eval, std::move(made),
                                   {.shards = choose_shards(config, shards_of_run, 1),
                                    .on_gpu = device.is_gpu(),
                                    .continues = found.exists() ? &found.header : nullptr});
  if (config.warm_start && !found.exists()) open_warm_start(*config.warm_start, *model.variables);
  const StepPlan& plan = planned.steps;
  const std::unique_ptr<Optimizer>& optimizer = planned.optimizer;
  const RunSchedules& schedules = *planned.schedules;
  optimizer->create_slots(device.device, *model.variables);
  try_first_batch(data.train, plan);
  const PartsMemory parts = make_parts(device, data, model, config, plan, *optimizer, device.is_gpu());
  const std::size_t residuals =
      config.comm.error_feedback
          ? static_cast<std::size_t>(ErrorFeedback::num_nodes(static_cast<int>(plan.spec().shards)) *
                                     model.variables->dense_elements()) *
                ErrorFeedback::kElementBytes
          : 0;
  check_room(config, run_dir, *data.train, *model.variables, *optimizer, parts.matrices.state + residuals);
  const std::vector<std::int64_t> sample_counts = plan.distinct_shard_sizes();
  const Graph::Calls calls = model.graph->prepare({.kernels = device.kernels,
                                                   .device = device.device,
                                                   .lanes = 1,
                                                   .training = true,
                                                   .sample_counts = sample_counts,
                                                   .wants_input_gradient = {},
                                                   .shards = static_cast<int>(plan.spec().shards)});
  print_layers(model, calls);
  std::vector<std::string> sources;
  for (const DataSource& source : config.data.sources) sources.push_back(source.name);
  const Sizes sizes{
      data,
      model,
      *optimizer,
      plan,
      calls,
      config.average,
      config.train.accumulate,
      config.general.device != "cpu",
      config.optimizer.shard,
      config.gradients.noise_scale,
      config.comm.compress,
      residuals,
      parts.matrices,
      parts.branches,
      parts.branch_bytes,
      sources,
      config.cluster.used()
          ? servers_text(config.cluster, *model.variables,
                         server_places(config.cluster, {placement_rules(cluster)}, *model.variables))
          : "",
      gating_text(config, model, *optimizer, device.is_gpu()),
      warnings_of_run(config, *model.graph, planned.clock)};
  print_data(sizes);
  const ScheduleRun run = schedule_run(config, planned.clock);
  print_lines(schedule_summary(schedules, run));
  const double sparse_bytes = print_variables(sizes);
  print_memory(sizes);
  print_messages(sizes, sparse_bytes);
  print_lines(
      recorded_text(config, model, *data.train, planned.names, config.train.total_steps(planned.clock)) +
      experiment_text(config));
  print_gpu_memory(device, no_gpu);
  if (arguments.plot_schedule) plot_schedules(arguments, schedules, run);
  print_result("The configuration is good.\n");
  return 0;
}

int run(const CheckArguments& arguments) {
  if (!arguments.overfit_batch) return check(arguments);
  if (launcher_rank_hint() == 0)  // the work of one process; the trial is that of all
    if (const int code = check(arguments); code != 0) return code;
  return overfit_batch(arguments);
}

}  // namespace

extern const Command kCheckCommand = {
    "check",
    "Check everything that train checks before its first step; print layers, memory and bytes per step",
    "lockstep check examples/digits.yaml --set train.batch_size=64\n"
    "mpirun -n 2 lockstep check examples/digits.yaml --overfit-batch",
    call_with<CheckArguments, declare, run>};

}  // namespace lockstep
