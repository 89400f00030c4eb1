// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep train`: loads and checks the configuration before MPI starts, trains or continues, and returns
// the exit code (75: checkpointed, to be queued again).
#include <fmt/format.h>
#include <csignal>
#include <cstdlib>

#include "api/estimator.h"
#include "api/launch.h"
#include "comm/shared_error.h"
#include "core/process_environment.h"
#include "core/run_signals.h"
#include "driver/command_line/command.h"
#include "driver/command_line/common_options.h"
#include "driver/commands/hang_rank.h"
#include "run/jobs/training_job.h"
#include "run/setup/data_trial.h"
#include "run/setup/run_directory.h"
#include "session/run_record.h"

namespace lockstep {

namespace {

void declare(CommandOptions& options, TrainArguments& arguments) {
  add_target(options, "CONFIG|RUN_DIR", arguments.target,
             "Configuration file (YAML), or a run directory, whose run continues with its own configuration");
  add_run_dir(options, arguments.run_dir,
              "Where checkpoints, summaries and the log go; default: runs/<name of CONFIG>");
  auto& steps = options.keep<std::optional<std::int64_t>>();
  options.after_parsing([&arguments, &steps] {
    if (!steps) return;
    arguments.overrides.push_back(fmt::format("train.steps={}", *steps));
    arguments.overrides.emplace_back("train.epochs=null");
  });
  add_overrides(options, arguments.overrides);
  options.add("--steps", steps, "Train until this global step, in place of train.epochs and train.steps")
      .type_name("N")
      .check(whole_number(1, kMostSteps));
  auto& resume = options.keep<std::string>("auto");
  options
      .add("--resume", resume,
           "auto: continue if there is a checkpoint; never: refuse if there is one; must: fail if there "
           "is none")
      .type_name("auto|never|must")
      .check(must_be(
          "one of auto, never, must (a run continues with its --run-dir)",
          [](const std::string& text) { return text == "auto" || text == "never" || text == "must"; }));
  options.after_parsing([&arguments, &resume] {
    arguments.resume = resume == "auto" ? Resume::automatic : resume == "must" ? Resume::must : Resume::never;
  });
  add_accept_changes(options, arguments.accept_changes);
  options
      .add("--record", arguments.record,
           "Keep hashes of all activations and gradients of this step, for `lockstep replay`; may be "
           "repeated")
      .type_name("N")
      .check(whole_number(1, kMostSteps))
      .one_value_each();
  add_hang(options, arguments.hang);
  add_quiet(options, arguments.quiet);
}

int run(const TrainArguments& arguments) {
  const double begin = unix_time();
  install_run_signals(process_environment);
  std::signal(SIGPIPE, SIG_IGN);  // a closed terminal or pipe must not end a run
  RunTarget target = resolve_target(arguments);
  try_data_on_chief(target.config);
  const Config& config = target.config;
  const TrainingJob job{.run_dir = target.run_dir,
                        .resume = arguments.resume,
                        .accept_changes = arguments.accept_changes,
                        .record = arguments.record,
                        .job_end = job_end(config.train.time_limit_seconds, begin, process_environment),
                        .quiet = arguments.quiet};
  const CommOptions limits{hang_timeout_seconds(arguments.hang, config.comm.timeout_seconds),
                           config.comm.start_timeout_seconds};
  return run_on_ranks(limits, arguments.quiet, [&](CommEnvironment& environment) {
    shared([&] { hang_rank(arguments.hang, environment.world()); });
    return Estimator(environment, config, target.run_dir).train(job).exit_code;
  });
}

}  // namespace

extern const Command kTrainCommand = {"train", "Train, or continue a run that was interrupted",
                                      "mpirun -n 2 lockstep train examples/digits.yaml --run-dir runs/digits",
                                      call_with<TrainArguments, declare, run>};

}  // namespace lockstep
