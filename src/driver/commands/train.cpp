// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep train`: loads and checks the configuration before MPI starts, trains or continues, and returns
// the exit code (75: checkpointed, to be queued again).
#include "driver/commands/commands.h"

#include <csignal>
#include <cstdlib>

#include "comm/agree.h"
#include "comm/shared_error.h"
#include "core/log.h"
#include "core/run_signals.h"
#include "driver/hang_rank.h"
#include "driver/launch.h"
#include "driver/setup/data_stage.h"
#include "driver/setup/data_trial.h"
#include "driver/setup/run_changes.h"
#include "driver/setup/run_directory.h"
#include "driver/setup/training.h"
#include "driver/setup/training_directory.h"
#include "driver/setup/training_log.h"
#include "session/job_recorder.h"

namespace lockstep {

namespace {

/// The job with the files of its data where it reads them. All ranks.
int run_prepared_job(CommEnvironment& environment, const Config& config, TrainingStart start,
                     JobRecorder& job, const RunChanges& changes, bool accept_changes) {
  const bool resumed = start.found.exists();
  RunContext context(environment, config, resumed ? std::optional(start.found.header.shards) : std::nullopt,
                     {.train = true,
                      .eval = true,
                      .updates = true,
                      .ranks = environment.world().size(),
                      .kept_in = resumed ? start.run_dir : std::string()});
  if (const auto code = job.interrupted_at_start()) return *code;
  check_data_of_run(context, job, changes, start.found, accept_changes);
  start.status = job.status();
  const std::unique_ptr<Training> training = shared([&] { return make_training(context, start); });
  MonitoredSession& session = *training->session;
  session.start();
  write_run_description(context, start.run_dir, resumed,
                        job.number());  // a run that cannot start keeps its own
  log_training_start(context, *training);
  session.run();
  training->reports.close();
  log_training_end(context);
  return job.end(session.interruption(), session.global_step(), session.final_reason());
}

/// The job from its start to its exit code. All ranks.
int run_job(CommEnvironment& environment, const Config& config, TrainingStart start, JobRecorder& job,
            const RunChanges& changes, bool accept_changes) {
  if (const auto code = job.interrupted_at_start()) return *code;
  DataStage stage(environment, config, start.run_dir);
  return stage.run([&] {
    if (const auto code = job.interrupted_at_start()) return *code;
    return run_prepared_job(environment, config, std::move(start), job, changes, accept_changes);
  });
}

SharedError nothing_left(const std::string& why, const std::string& run_dir) {
  return SharedError(Error(ErrorKind::config, why + ", so the changed configuration would have no effect",
                           run_dir,
                           "Give more train.epochs or train.steps, or begin another run (--run-dir)."));
}

}  // namespace

int run_command(const TrainArguments& arguments) {
  const double begin = unix_time();
  const auto environment_variable = [](const char* name) -> const char* { return std::getenv(name); };
  install_run_signals(environment_variable);
  std::signal(SIGPIPE, SIG_IGN);  // a closed terminal or pipe must not end a run
  RunTarget target = resolve_target(arguments);
  try_data_on_chief(target.config);
  const Config& config = target.config;
  const std::optional<JobEnd> end_of_job =
      job_end(config.train.time_limit_seconds, begin, environment_variable);
  const std::string& run_dir = target.run_dir;
  const JobSpec job_spec{run_dir, hash_of_config(resolved_config_text(config)),
                         config.train.max_jobs_without_progress};
  const CommOptions limits{hang_timeout_seconds(arguments.hang, config.comm.timeout_seconds),
                           config.comm.start_timeout_seconds};
  return run_on_ranks(limits, arguments.quiet, [&](CommEnvironment& environment) {
    Communicator& world = environment.world();
    shared([&] { hang_rank(arguments.hang, world); });
    const std::unique_ptr<RunLock> lock = take_run_directory(world, run_dir);
    const FoundCheckpoint found = checkpoint_to_resume(world, arguments.resume, config, run_dir);
    shared([&] {
      agree(
          world,
          [&] {
            if (lock) log_to_file(run_dir + "/lockstep.log");
          },
          "opening the log");
    });
    const RunChanges changes = changes_of_run(world, config, found, run_dir, arguments.accept_changes);
    if (const std::string why = why_finished(world, config.train, job_spec, found, changes.end);
        !why.empty()) {
      if (changes.result) throw nothing_left(why, run_dir);
      if (world.rank() == 0) log_info("{}", why);
      return 0;
    }
    JobRecorder job(world, job_spec, found);
    // The status of a run directory that this run has lost is not its own.
    const auto failed = [&](int code, const char* why) {
      if (lock && lock->lost().empty()) job.failed(code, why);
    };
    try {
      return run_job(environment, config,
                     {.run_dir = run_dir,
                      .found = found,
                      .record = arguments.record,
                      .job_end = end_of_job,
                      .status = nullptr,
                      .lock = lock.get(),
                      .quiet = arguments.quiet},
                     job, changes, arguments.accept_changes);
    } catch (const Error& error) {
      failed(exit_code(error.kind()), error.what());
      throw;
    } catch (const std::exception& error) {
      failed(1, error.what());
      throw;
    }
  });
}

}  // namespace lockstep
