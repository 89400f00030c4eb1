// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The command `lockstep sweep`.
#include "driver/command_line_checks.h"
#include "driver/command_line_options.h"
#include "driver/command_line_parts.h"

namespace lockstep {

namespace {
constexpr std::int64_t kMostGroups = 65536;  // as sweep.groups
}

void CommandLineParser::add_sweep() {
  CLI::App* command =
      add(app_, "sweep", "Train a configuration with different settings, several at a time, and compare them",
          "mpirun -n 4 lockstep sweep examples/digits_sweep.yaml --groups 2\n"
          "  mpirun -n 4 lockstep sweep runs/sweeps/digits_sweep",
          [this] {
            SweepArguments arguments = sweep_;
            arguments.overrides = overrides();
            return arguments;
          });
  add_target(command, "CONFIG", sweep_.target,
             "Configuration file with a section sweep, or the folder of a sweep to continue");
  add_run_dir(command, sweep_.run_dir, "Folder of the sweep; default: runs/sweeps/<name of CONFIG>");
  command
      ->add_option(
          "--groups", sweep_.groups,
          "So many trials train at once, each on a part of the ranks; default: sweep.groups, else one "
          "per rank")
      ->type_name("N")
      ->check(whole_number(1, kMostGroups));
  add_overrides(command);
  add_json(command, sweep_.json, "Print the table as JSON");
  add_quiet(command, sweep_.quiet);
}

}  // namespace lockstep
