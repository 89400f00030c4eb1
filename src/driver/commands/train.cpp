// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep train`: loads and checks the configuration before MPI starts, trains or continues, and returns
// the exit code (75: checkpointed, to be queued again).
#include "driver/commands/commands.h"

#include <csignal>
#include <cstdlib>

#include "comm/shared_error.h"
#include "core/log.h"
#include "core/run_signals.h"
#include "driver/hang_rank.h"
#include "driver/launch.h"
#include "driver/setup/training.h"
#include "driver/setup/training_directory.h"
#include "driver/setup/training_log.h"
#include "session/job_recorder.h"

namespace lockstep {

namespace {

/// The job from its start to its exit code. All ranks.
int run_job(CommEnvironment& environment, const Config& config, TrainingStart start, JobRecorder& job) {
  if (const auto code = job.interrupted_at_start()) return *code;
  const bool resumed = start.found.exists();
  RunContext context(environment, config, resumed ? std::optional(start.found.header.shards) : std::nullopt,
                     true, true);
  if (const auto code = job.interrupted_at_start()) return *code;
  start.status = job.status();
  const std::unique_ptr<Training> training = shared([&] { return make_training(context, start); });
  write_run_description(context, start.run_dir, resumed);
  MonitoredSession& session = *training->session;
  session.start();
  log_training_start(context, *training);
  session.run();
  training->reports.close();
  log_training_end(context);
  return job.end(session.interruption(), session.global_step(), session.final_reason());
}

}  // namespace

int run_command(const TrainArguments& arguments) {
  const double begin = unix_time();
  const auto environment_variable = [](const char* name) -> const char* { return std::getenv(name); };
  install_run_signals(environment_variable);
  std::signal(SIGPIPE, SIG_IGN);  // a closed terminal or pipe must not end a run
  const Config config = load_config(arguments.config, arguments.overrides);
  const std::optional<JobEnd> end_of_job =
      job_end(config.train.time_limit_seconds, begin, environment_variable);
  const std::string run_dir =
      arguments.run_dir.empty() ? default_run_directory(arguments.config) : arguments.run_dir;
  const JobSpec job_spec{run_dir, hash_of_config(resolved_config_text(config)),
                         config.train.max_jobs_without_progress};
  const std::optional<double> timeout = hang_timeout_seconds(arguments.hang, config.comm.timeout_seconds);
  return run_on_ranks(timeout, arguments.quiet, [&](CommEnvironment& environment) {
    Communicator& world = environment.world();
    shared([&] { hang_rank(arguments.hang, world); });
    const std::unique_ptr<RunLock> lock = take_run_directory(world, run_dir);
    const FoundCheckpoint found = checkpoint_to_resume(world, arguments.resume, config, run_dir);
    if (world.rank() == 0) log_to_file(run_dir + "/lockstep.log");
    if (const std::string why = why_finished(world, config.train, job_spec, found); !why.empty()) {
      if (world.rank() == 0) log_info("{}", why);
      return 0;
    }
    JobRecorder job(world, job_spec, found);
    try {
      return run_job(environment, config,
                     {.run_dir = run_dir,
                      .found = found,
                      .record = arguments.record,
                      .job_end = end_of_job,
                      .status = nullptr,
                      .quiet = arguments.quiet},
                     job);
    } catch (const Error& error) {
      job.failed(exit_code(error.kind()), error.what());
      throw;
    } catch (const std::exception& error) {
      job.failed(1, error.what());
      throw;
    }
  });
}

}  // namespace lockstep
