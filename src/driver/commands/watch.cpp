// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep watch`: a job that evaluates each new checkpoint of a run that another job trains. It may have
// other numbers of ranks, and other hosts and devices.
#include <cstdlib>

#include "api/launch.h"
#include "comm/agree.h"
#include "core/log_once.h"
#include "core/process_environment.h"
#include "core/run_signals.h"
#include "driver/command_line/command.h"
#include "driver/command_line/common_options.h"
#include "driver/commands/evaluation_text.h"
#include "io/print_result.h"
#include "run/jobs/checkpoint_watch.h"

namespace lockstep {

namespace {

constexpr double kMostSeconds = 1e9;

struct WatchArguments {
  std::string run_dir;
  std::string name = "continuous";  ///< of the folder eval_NAME
  double delay_seconds = 0, throttle_seconds = 60, most_wait_seconds = 7200;
  bool averages = true;
  std::vector<std::string> overrides;
  bool quiet = false;
};

void declare(CommandOptions& options, WatchArguments& arguments) {
  add_target(options, "RUN_DIR", arguments.run_dir, "Run directory; it may appear later");
  options
      .add("--name", arguments.name, "The numbers go to eval_NAME of the run directory; default: continuous")
      .type_name("NAME")
      .check(not_empty("a name"));
  const auto seconds = [&](const char* option, double& value, const char* help) {
    options.add(option, value, help).type_name("S").check(number(0, kMostSeconds));
  };
  seconds("--delay", arguments.delay_seconds, "Seconds before the first look; default: 0");
  seconds("--throttle", arguments.throttle_seconds,
          "Seconds from the begin of an evaluation to that of the next, at least; default: 60");
  seconds("--max-wait", arguments.most_wait_seconds,
          "Seconds without a new checkpoint that are an error; default: 7200");
  add_averages(options, arguments.averages);
  add_overrides(options, arguments.overrides);
  add_quiet(options, arguments.quiet);
}

/// A file that one rank cannot read is an error of all.
Config config_of_run(Communicator& world, const WatchArguments& arguments) {
  Config config;
  agree(
      world, [&] { config = load_config(arguments.run_dir + "/config.yaml", arguments.overrides); },
      "reading the configuration");
  return config;
}

int run(const WatchArguments& arguments) {
  install_run_signals(process_environment);
  show_each_warning_once();
  return run_on_ranks({}, arguments.quiet, [&](CommEnvironment& environment) {
    const bool is_chief = environment.world().rank() == 0;
    const WatchOutcome outcome = watch_checkpoints(
        environment, {.run_dir = arguments.run_dir,
                      .name = arguments.name,
                      .averages = arguments.averages,
                      .delay_seconds = arguments.delay_seconds,
                      .throttle_seconds = arguments.throttle_seconds,
                      .most_wait_seconds = arguments.most_wait_seconds,
                      .config = [&] { return config_of_run(environment.world(), arguments); },
                      .evaluated =
                          [&](const EvaluationOutcome& result) {
                            if (is_chief) print_as_is(evaluation_text(result) + "\n");
                            return true;
                          }});
    return exit_code(outcome.interruption.kind);
  });
}

}  // namespace

extern const Command kWatchCommand = {
    "watch", "Evaluate each new checkpoint of a run that another job trains, until it ends",
    "mpirun -n 2 lockstep watch runs/digits --throttle 300", call_with<WatchArguments, declare, run>};

}  // namespace lockstep
