// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep experiment`: calls the method of an Experiment that section experiment of a configuration names.
// Prints a line of JSON for each evaluation that is no part of a training.
#include "api/experiment.h"

#include <csignal>

#include "api/launch.h"
#include "core/error.h"
#include "driver/commands/commands.h"
#include "driver/commands/evaluation_text.h"
#include "driver/commands/experiment_text.h"
#include "io/print_result.h"
#include "run/sections/experiment_options.h"
#include "run/setup/data_trial.h"
#include "run/setup/run_directory.h"

namespace lockstep {

namespace {

ExperimentSpec spec_of(const Config& config, const ExperimentOptions& options) {
  return {.train_steps = config.train.steps,
          .min_eval_frequency = options.min_eval_frequency,
          .train_steps_per_iteration = options.train_steps_per_iteration,
          .delay_workers_by_global_step = options.delay_workers_by_global_step,
          .eval_delay_seconds = options.eval_delay_seconds,
          .continuous_eval_throttle_seconds = options.throttle_seconds,
          .most_wait_seconds = options.max_wait_seconds,
          .exports = options.exports};
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

}  // namespace

int run_command(const ExperimentArguments& arguments) {
  std::signal(SIGPIPE, SIG_IGN);  // as lockstep train
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
    const bool is_chief = environment.world().rank() == 0;
    spec.evaluated = [is_chief](const EvaluationOutcome& evaluation) {
      if (is_chief) print_result("{}\n", evaluation_text(evaluation));
    };
    Experiment experiment(estimator, std::move(spec));
    return call(experiment, options.schedule);
  });
}

}  // namespace lockstep
