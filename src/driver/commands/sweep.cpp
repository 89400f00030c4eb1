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
#include "driver/commands/commands.h"
#include "io/print_result.h"
#include "run/setup/data_trial.h"
#include "session/run_record.h"
#include "tools/sweep/sweep_run.h"
#include "tools/sweep/sweep_table.h"

namespace lockstep {

namespace {

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
    print_result("{}", table_json(plan, table, outcome.records));
    return;
  }
  print_result("{}", table_text(table));
  if (table.best)
    print_result("\nbest trial  {}, {}/best.yaml\nreport      {}/report.html\n", *table.best, sweep_dir,
                 sweep_dir);
}

}  // namespace

int run_command(const SweepArguments& arguments) {
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

}  // namespace lockstep
