// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep experiment`: calls the method of an Experiment that section experiment of a configuration names.
// Prints a line of JSON for each evaluation that is no part of a training.
#include "api/experiment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <csignal>

#include "api/launch.h"
#include "core/error.h"
#include "core/log_once.h"
#include "driver/command_line/command.h"
#include "driver/command_line/common_options.h"
#include "driver/commands/evaluation_text.h"
#include "driver/commands/experiment_text.h"
#include "io/print_result.h"
#include "run/sections/experiment_options.h"
#include "run/setup/data_trial.h"
#include "run/setup/run_directory.h"

namespace lockstep {

namespace {

struct ExperimentArguments {
  std::string target;    ///< a configuration file, or a run directory
  std::string run_dir;   ///< with a configuration file; empty: its default run directory
  std::string schedule;  ///< empty: that of section experiment
  std::vector<std::string> overrides;
  bool accept_changes = false;
  bool quiet = false;
};

/// The exports with the directions that metrics of the configuration declare.
std::vector<ExportStrategy> exports_of(const Config& config, const ExperimentOptions& options) {
  std::vector<ExportStrategy> exports = options.exports;
  for (ExportStrategy& strategy : exports) {
    const Direction direction = direction_of(strategy.metric, config.eval.metrics);
    if (!strategy.larger_is_better && direction != Direction::none)
      strategy.larger_is_better = direction == Direction::max;
  }
  return exports;
}

ExperimentSpec spec_of(const Config& config, const ExperimentOptions& options) {
  return {.train_steps = config.train.steps,
          .min_eval_frequency = options.min_eval_frequency,
          .train_steps_per_iteration = options.train_steps_per_iteration,
          .delay_workers_by_global_step = options.delay_workers_by_global_step,
          .eval_delay_seconds = options.eval_delay_seconds,
          .continuous_eval_throttle_seconds = options.throttle_seconds,
          .most_wait_seconds = options.max_wait_seconds,
          .exports = exports_of(config, options)};
}

/// The exit code.
int call(Experiment& experiment, const std::string& schedule) {
  if (schedule == "train") return experiment.train().exit_code;
  if (schedule == "train_and_evaluate") return experiment.train_and_evaluate().exit_code;
  if (schedule == "continuous_train_and_eval") return experiment.continuous_train_and_eval().exit_code;
  if (schedule == "continuous_eval") return exit_code(experiment.continuous_eval().interruption.kind);
  if (schedule == "continuous_eval_on_train_data")
    return exit_code(experiment.continuous_eval_on_train_data().interruption.kind);
  if (schedule == "evaluate")
    experiment.evaluate();
  else if (schedule == "test")
    experiment.test();
  else
    LOCKSTEP_CHECK(false, "an unknown schedule '{}'", schedule);
  return 0;
}

void declare(CommandOptions& options, ExperimentArguments& arguments) {
  add_target(options, "CONFIG", arguments.target, "Configuration file, or a run directory to continue");
  add_run_dir(options, arguments.run_dir, "Run directory; default: runs/<name of CONFIG>");
  const std::vector<std::string> schedules(experiment_schedules().begin(), experiment_schedules().end());
  options
      .add("--schedule", arguments.schedule,
           fmt::format("One of {}; default: experiment.schedule of the configuration",
                       fmt::join(schedules, ", ")))
      .type_name("NAME")
      .check(one_of_names(schedules));
  add_overrides(options, arguments.overrides);
  add_accept_changes(options, arguments.accept_changes);
  add_quiet(options, arguments.quiet);
}

int run(const ExperimentArguments& arguments) {
  std::signal(SIGPIPE, SIG_IGN);  // as lockstep train
  show_each_warning_once();
  RunTarget target = resolve_target(RunArguments{
      .target = arguments.target, .run_dir = arguments.run_dir, .overrides = arguments.overrides});
  const Config& config = target.config;
  ExperimentOptions options = experiment_options(config.section("experiment"));
  if (!arguments.schedule.empty()) options.schedule = arguments.schedule;
  check_experiment(config, options.schedule);
  try_data_on_chief(target.config);
  const CommOptions limits{config.comm.timeout_seconds, config.comm.start_timeout_seconds};
  return run_on_ranks(limits, arguments.quiet, [&](CommEnvironment& environment) {
    Estimator estimator(environment, config, target.run_dir);
    ExperimentSpec spec = spec_of(config, options);
    spec.accept_changes = arguments.accept_changes;
    const bool is_chief = environment.world().rank() == 0;
    spec.evaluated = [is_chief](const EvaluationOutcome& evaluation) {
      if (is_chief) print_as_is(evaluation_text(evaluation) + "\n");
    };
    Experiment experiment(estimator, std::move(spec));
    return call(experiment, options.schedule);
  });
}

}  // namespace

extern const Command kExperimentCommand = {
    "experiment", "Train and evaluate as section experiment of a configuration says, and export",
    "mpirun -n 4 lockstep experiment examples/digits.yaml --schedule continuous_train_and_eval",
    call_with<ExperimentArguments, declare, run>};

}  // namespace lockstep
