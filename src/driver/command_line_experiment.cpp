// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The command `lockstep experiment`.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "driver/command_line_checks.h"
#include "driver/command_line_options.h"
#include "driver/command_line_parts.h"
#include "run/sections/experiment_options.h"

namespace lockstep {

void CommandLineParser::add_experiment() {
  CLI::App* command = add(
      app_, "experiment", "Train and evaluate as section experiment of a configuration says, and export",
      "mpirun -n 4 lockstep experiment examples/digits.yaml --schedule continuous_train_and_eval", [this] {
        ExperimentArguments arguments = experiment_;
        arguments.overrides = overrides();
        return arguments;
      });
  add_target(command, "CONFIG", experiment_.target, "Configuration file, or a run directory to continue");
  add_run_dir(command, experiment_.run_dir, "Run directory; default: runs/<name of CONFIG>");
  static const std::string kSchedules = fmt::format("{}", fmt::join(experiment_schedules(), ", "));
  command
      ->add_option("--schedule", experiment_.schedule,
                   fmt::format("One of {}; default: experiment.schedule of the configuration", kSchedules))
      ->type_name("NAME")
      ->check(must_be(("one of " + kSchedules).c_str(), [](const std::string& text) {
        return std::ranges::find(experiment_schedules(), text) != experiment_schedules().end();
      }));
  add_overrides(command);
  add_quiet(command, experiment_.quiet);
}

}  // namespace lockstep
