// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep train`: loads and checks the configuration before MPI starts, trains or continues, and returns
// the exit code (75: checkpointed, to be queued again).
#include <csignal>
#include <cstdlib>

#include "api/estimator.h"
#include "api/launch.h"
#include "comm/shared_error.h"
#include "core/process_environment.h"
#include "core/run_signals.h"
#include "driver/commands/commands.h"
#include "driver/hang_rank.h"
#include "run/jobs/training_job.h"
#include "run/setup/data_trial.h"
#include "run/setup/run_directory.h"
#include "session/run_record.h"

namespace lockstep {

int run_command(const TrainArguments& arguments) {
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

}  // namespace lockstep
