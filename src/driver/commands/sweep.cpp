// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep sweep`: trains trials of a configuration with different settings, and prints their table.
#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "api/launch.h"
#include "core/error.h"
#include "core/process_environment.h"
#include "core/run_signals.h"
#include "driver/command_line/command.h"
#include "driver/command_line/common_options.h"
#include "io/print_result.h"
#include "run/setup/data_trial.h"
#include "session/run_record.h"
#include "tools/sweep/sweep_run.h"
#include "tools/sweep/sweep_table.h"

namespace lockstep {

namespace {

constexpr std::int64_t kMostGroups = 65536;  ///< as sweep.groups

struct SweepArguments {
  std::string target;   ///< a configuration file, or the folder of a sweep
  std::string run_dir;  ///< with a configuration file; empty: runs/sweeps/<name of the configuration>
  std::optional<std::int64_t> groups;
  std::vector<std::string> overrides;
  bool json = false, quiet = false;
};

namespace fs = std::filesystem;

struct SweepTarget {
  Config config;
  std::string sweep_dir;
};

SweepTarget resolve(const SweepArguments& arguments) {
  std::error_code code;
  if (!fs::is_directory(arguments.target, code))
    return {load_config(arguments.target, arguments.overrides),
            arguments.run_dir.empty() ? (fs::path("runs/sweeps") / fs::path(arguments.target).stem()).string()
                                      : arguments.run_dir};
  if (!arguments.run_dir.empty())
    throw Error(ErrorKind::usage, "sweep: the folder of a sweep is given, and --run-dir as well",
                arguments.target,
                "A sweep continues in its own folder. To begin another one like it, give its sweep.yaml.");
  const std::string config = (fs::path(arguments.target) / "sweep.yaml").string();
  if (!fs::is_regular_file(config, code))
    throw Error(ErrorKind::config, "this is no folder of a sweep: it has no sweep.yaml", arguments.target,
                "Give the folder that `lockstep sweep` wrote, or a configuration file.");
  return {load_config(config, arguments.overrides), arguments.target};
}

void print_table(const SweepPlan& plan, const SweepOutcome& outcome, const SweepArguments& arguments,
                 const std::string& sweep_dir) {
  const SweepTable table = sweep_table_of(plan, outcome.records);
  if (arguments.json) {
    print_as_is(table_json(plan, table, outcome.records));
    return;
  }
  print_lines(table_text(table));
  if (table.best)
    print_result("\nbest trial  {}, {}/best.yaml\nreport      {}/report.html\n", *table.best, sweep_dir,
                 sweep_dir);
}

void declare(CommandOptions& options, SweepArguments& arguments) {
  add_target(options, "CONFIG", arguments.target,
             "Configuration file with a section sweep, or the folder of a sweep to continue");
  add_run_dir(options, arguments.run_dir, "Folder of the sweep; default: runs/sweeps/<name of CONFIG>");
  options
      .add("--groups", arguments.groups,
           "So many trials train at once, each on a part of the ranks; default: sweep.groups, else one "
           "per rank")
      .type_name("N")
      .check(whole_number(1, kMostGroups));
  add_overrides(options, arguments.overrides);
  add_json(options, arguments.json, "Print the table as JSON");
  add_quiet(options, arguments.quiet);
}

int run(const SweepArguments& arguments) {
  const double begin = unix_time();
  install_run_signals(process_environment);
  std::signal(SIGPIPE, SIG_IGN);  // as lockstep train
  SweepTarget target = resolve(arguments);
  SweepPlan plan = sweep_plan(std::move(target.config));
  try_data_on_chief(plan.base);
  const SweepJob job{.sweep_dir = target.sweep_dir,
                     .groups = arguments.groups,
                     .job_end = job_end(plan.base.train.time_limit_seconds, begin, process_environment),
                     .quiet = arguments.quiet};
  const CommOptions limits{plan.base.comm.timeout_seconds, plan.base.comm.start_timeout_seconds};
  return run_on_ranks(limits, arguments.quiet, [&](CommEnvironment& environment) {
    const SweepOutcome outcome = run_sweep(environment, plan, job);
    if (environment.world().rank() == 0) print_table(plan, outcome, arguments, target.sweep_dir);
    if (outcome.exit_code != 0) return outcome.exit_code;
    return sweep_table_of(plan, outcome.records).best ? 0 : 1;  // 1: all trials have failed
  });
}

}  // namespace

extern const Command kSweepCommand = {
    "sweep", "Train a configuration with different settings, several at a time, and compare them",
    "mpirun -n 4 lockstep sweep examples/digits_sweep.yaml --groups 2\n"
    "mpirun -n 4 lockstep sweep runs/sweeps/digits_sweep",
    call_with<SweepArguments, declare, run>};

}  // namespace lockstep
