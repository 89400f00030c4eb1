// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/commands/command_train.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "comm/agree.h"
#include "comm/transport.h"
#include "core/cpu.h"
#include "core/log.h"
#include "core/run_signals.h"
#include "core/version.h"
#include "driver/hang_rank.h"
#include "driver/launch.h"
#include "driver/setup/gpu_module.h"
#include "driver/setup/run_context.h"
#include "driver/setup/train_hooks.h"
#include "driver/setup/train_setup.h"
#include "driver/setup/widened_products.h"
#include "io/atomic_file.h"
#include "io/checkpoint_store.h"
#include "io/run_lock.h"
#include "session/hook_table.h"
#include "session/hooks/record_hook.h"
#include "session/hooks/step_clock_hook.h"
#include "session/job_recorder.h"
#include "session/monitored_session.h"
#include "session/run_reports.h"
#include "session/run_vocabulary.h"
#include "session/saver.h"
#include "session/warm_start.h"
#include "train/trainer.h"

namespace lockstep {

namespace {

void log_transports(const std::vector<std::string>& lines, const std::vector<std::string>& hosts) {
  if (lines.empty()) return;
  for (const std::string& line : lines) log_info("messages {}", line);
  constexpr double kSoon = 60;
  const bool one_host = std::ranges::all_of(hosts, [&](const std::string& h) { return h == hosts.front(); });
  if (const auto seconds = launcher_notices_after_seconds(); !one_host && seconds && *seconds > kSoon)
    log_info(
        "a host that is cut off ends these ranks in time, but mpirun itself only after {:.0f} s or more: "
        "docs/hosts.md says how to shorten that",
        *seconds);
}

/// One training run, from the session's parts to the last checkpoint. All ranks.
class TrainingRun {
 public:
  struct Options {
    std::string run_dir;
    const CommandLine& line;
    std::optional<JobEnd> job_end;
    RunStatus* status = nullptr;  ///< the chief's
  };
  TrainingRun(RunContext& session, const FoundCheckpoint& found, const Options& options)
      : session_(session),
        config_(session.config()),
        found_(found),
        plan_(step_plan_spec(session)),
        optimizer_(config_.optimizer.make()),
        saver_(session.is_chief(), options.run_dir, config_.checkpoint.saver),
        reports_(session.is_chief(), options.run_dir,
                 {.events = config_.summary.events, .metrics = config_.summary.metrics}) {
    optimizer_->create_slots(session.device().device, *session.model().variables);
    trainer_ = std::make_unique<Trainer>(session.executor_context(), session.gradients(), session.control(),
                                         session.train_data(), plan_, *optimizer_, trainer_options(session));
    if (session.eval_data() != nullptr)
      evaluation_ = std::make_unique<Evaluation>(session.executor_context(), session.control(),
                                                 *session.eval_data(), config_.evaluation_batch_size(),
                                                 bind_metrics(config_.eval.metrics, *session.model().heads,
                                                              *session.model().graph, *session.eval_data()));
    session.workers().grow_scratch(
        std::max(trainer_->scratch_bytes(), evaluation_ ? evaluation_->scratch_bytes() : 0));
    monitored_ = std::make_unique<MonitoredSession>(
        SessionParts{.control = session.control(),
                     .trainer = *trainer_,
                     .variables = *session.model().variables,
                     .optimizer = *optimizer_,
                     .reports = reports_,
                     .shards = session.shards(),
                     .seed = session.seed(),
                     .accuracy = session.model().accuracy(),
                     .part_accuracy = session.model().report_accuracy},
        MonitoredSession::Options{.run_dir = options.run_dir, .max_recoveries = config_.train.max_recoveries},
        [this](HookContext& context) { return restore(context); });
    const std::vector<std::int64_t>& record = options.line.record;
    if (!record.empty())  // first: it keeps what is known when another hook ends the run
      monitored_->add(std::make_unique<RecordHook>(
          session.executor_context(), RecordHook::Options{.steps = {record.begin(), record.end()},
                                                          .config_text = resolved_config_text(config_),
                                                          .environment = session.environment()}));
    add_train_hooks(*monitored_, config_,
                    {.plan = plan_,
                     .evaluation = evaluation_.get(),
                     .saver = saver_,
                     .copy_ways = {.pool = &session.workers().pool(),
                                   .device = &session.executor_context().device,
                                   .stream = session.executor_context().lanes.front().stream},
                     .status = options.status,
                     .job_end = options.job_end,
                     .quiet = options.line.quiet});
    if (options.status != nullptr)
      options.status->set_total_steps(config_.train.total_steps(plan_.steps_per_epoch()));
    monitored_->add(
        std::make_unique<StepClockHook>([&session](double seconds) { session.step_took(seconds); }));
  }

  /// To the run's end, or until it is interrupted; the state is then durable. All ranks.
  const MonitoredSession& run() {
    monitored_->start();
    const std::vector<std::string> transports = describe_transports(session_.world(), session_.hosts());
    describe();
    if (session_.is_chief()) log_transports(transports, session_.hosts());
    monitored_->run();
    reports_.close();
    if (session_.is_chief() && session_.device().is_gpu())
      log_info("GPU memory: at most {:.2f} MB at a time on rank 0",
               static_cast<double>(session_.device().device.peak_bytes()) * 1e-6);
    return *monitored_;
  }

 private:
  /// Where an attempt begins: at the checkpoint that was found at the start, or at the newest one in a
  /// recovery, or with initial values.
  std::int64_t restore(HookContext& context) {
    shared([&] {
      if (context.recoveries() > 0) {
        agree(
            session_.control(), [&] { saver_.wait(config_.checkpoint.saver.timeout_seconds); },
            "waiting for the checkpoint in flight");
        found_ = find_checkpoint(session_.world(), context.run_dir(), "");
        session_.model().variables->initialize(session_.seed());
        optimizer_->reset_slots();
      }
      if (found_.exists())
        restore_state(session_.world(), found_, *session_.model().variables, optimizer_.get(),
                      context.state(found_.deferred));
      else if (config_.warm_start)
        warm_start(session_.world(), *config_.warm_start, *session_.model().variables);
    });
    trainer_->set_position(found_.exists() ? found_.header.global_step : 0,
                           {found_.header.epoch, found_.header.samples_consumed});
    return found_.exists() ? found_.header.global_step : -1;
  }

  void describe() const {
    if (!session_.is_chief()) return;
    const int ranks = session_.world().size(), threads = session_.workers().pool().size();
    const auto counted = [](int n, const char* what) {
      return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
    };
    const std::string mpi = mpi_library_version();
    const DType type = config_.precision.compute;
    log_info("lockstep {} ({}); {}, {}", kVersion, kBuild, primitive_library_version(type),
             mpi.substr(0, mpi.find(',')));
    log_info("{}, {} of them on {}, each with {} on {}; device: {}{}", counted(ranks, "rank"),
             session_.ranks_on_host(), host_name(), counted(threads, "thread"),
             counted(session_.cores_per_rank(), "core"), session_.device().is_gpu() ? "cuda" : "cpu",
             trainer_->overlaps() ? "; communication overlapped" : "");
    if (session_.device().is_gpu()) log_info("GPUs of the ranks:\n{}", session_.device_table());
    if (session_.shares_gpus())
      log_warning(
          "RANKS SHARE A GPU: they take turns on it, and gradients pass through the host's memory. Start one "
          "rank per GPU.");
    if (const std::string widened = widened_products(*session_.model().graph); !widened.empty())
      log_info("products in float32, which save no time: {}", widened);
    if (!session_.device().is_gpu() && host_has_gpus())
      log_info("this host has GPUs, which are not used: device is cpu");
    log_info("{} parameters, {} samples, batch {} in {}; the configuration as run is {}/config.yaml",
             session_.model().variables->num_parameters(), session_.train_data().size(),
             plan_.spec().batch_size, counted(session_.shards(), "shard"), monitored_->context().run_dir());
    if (trainer_->global_step() > 0)
      log_info("continuing at step {}, epoch {}, sample {} of it, from {}", trainer_->global_step(),
               trainer_->cursor().epoch + 1, trainer_->cursor().samples_consumed, found_.path);
  }

  RunContext& session_;
  const Config& config_;
  FoundCheckpoint found_;
  StepPlan plan_;
  std::unique_ptr<Optimizer> optimizer_;
  Saver saver_;
  RunReports reports_;
  std::unique_ptr<Trainer> trainer_;
  std::unique_ptr<Evaluation> evaluation_;
  std::unique_ptr<MonitoredSession> monitored_;
};

/// The chief makes the run directory and locks it. All ranks.
std::unique_ptr<RunLock> take_run_directory(Communicator& world, const std::string& run_dir) {
  std::unique_ptr<RunLock> lock;
  shared([&] {
    agree(
        world,
        [&] {
          if (world.rank() != 0) return;
          std::error_code failed;
          std::filesystem::create_directories(run_dir, failed);
          if (failed)
            throw Error(ErrorKind::config,
                        fmt::format("the run directory cannot be made: {}", failed.message()), run_dir,
                        "Choose another with --run-dir.");
          lock = std::make_unique<RunLock>(run_dir);
          CheckpointStore(run_dir, 0).clean();
        },
        "taking the run directory");
  });
  return lock;
}

void check_resume(const CommandLine& line, const Config& config, const FoundCheckpoint& found,
                  const std::string& run_dir) {
  if (line.resume == Resume::never && found.exists())
    throw Error(ErrorKind::config, "the run directory already holds a run, and --resume never was given",
                run_dir,
                "Choose another with --run-dir, remove this one, or continue it with --resume auto.");
  if (line.resume == Resume::must && !found.exists())
    throw Error(ErrorKind::checkpoint, "there is no checkpoint to continue from, and --resume must was given",
                run_dir, "Check --run-dir, or start the run without --resume must.");
  if (found.exists() && found.header.weights_only)
    throw Error(ErrorKind::checkpoint, "holds weights only: there is no run in it that could be continued",
                found.path,
                "Name another checkpoint in the first line of the state file, or begin a new run with "
                "warm_start.checkpoint.");
  if (found.exists() && found.header.seed != config.general.seed)
    throw config.error(
        "", "seed",
        fmt::format("seed is {}, but the run began with {}", config.general.seed, found.header.seed),
        "The order of the samples depends on it: leave it as it was, or start a new run directory.");
}

/// The job from its start to its exit code. All ranks.
int run_job(CommEnvironment& environment, const Config& config, const FoundCheckpoint& found,
            JobRecorder& job, TrainingRun::Options options) {
  Communicator& world = environment.world();
  if (const auto code = job.interrupted_at_start()) return *code;
  RunContext session(environment, config, found.exists() ? std::optional(found.header.shards) : std::nullopt,
                     true, true);
  if (const auto code = job.interrupted_at_start()) return *code;
  options.status = job.status();
  const auto run = shared([&] { return std::make_unique<TrainingRun>(session, found, options); });
  shared([&] {
    agree(
        world,
        [&] {
          if (world.rank() != 0) return;
          if (found.exists()) check_vocabulary(options.run_dir, session.train_data());
          write_file_atomically(options.run_dir + "/config.yaml", resolved_config_text(config));
          keep_vocabulary(options.run_dir, session.train_data());
        },
        "writing config.yaml and the vocabulary");
  });
  const MonitoredSession& ended = run->run();
  return job.end(ended.interruption(), ended.global_step(), ended.final_reason());
}

}  // namespace

int command_train(const CommandLine& line) {
  const double begin = unix_time();
  const auto environment_variable = [](const char* name) -> const char* { return std::getenv(name); };
  install_run_signals(environment_variable);
  std::signal(SIGPIPE, SIG_IGN);  // who reads our messages may go away: no reason to end a run
  const Config config = load_config(line.target, line.overrides);
  const std::optional<JobEnd> end_of_job =
      job_end(config.train.time_limit_seconds, begin, environment_variable);
  const std::string run_dir = line.run_dir.empty() ? default_run_directory(line.target) : line.run_dir;
  const JobSpec job_spec{run_dir, hash_of_config(resolved_config_text(config)),
                         config.train.max_jobs_without_progress};
  const std::optional<double> timeout = hang_timeout_seconds(line, config.comm.timeout_seconds);
  return run_on_ranks(timeout, line.quiet, [&](CommEnvironment& environment) {
    Communicator& world = environment.world();
    shared([&] { hang_rank(line, world); });
    const std::unique_ptr<RunLock> lock = take_run_directory(world, run_dir);
    const FoundCheckpoint found = shared([&] {
      const FoundCheckpoint checkpoint = find_checkpoint(world, run_dir, "");
      check_resume(line, config, checkpoint, run_dir);
      return checkpoint;
    });
    if (world.rank() == 0) log_to_file(run_dir + "/lockstep.log");
    if (const std::string why = why_finished(world, config.train, job_spec, found); !why.empty()) {
      if (world.rank() == 0) log_info("{}", why);
      return 0;
    }
    JobRecorder job(world, job_spec, found);
    try {
      return run_job(environment, config, found, job,
                     {.run_dir = run_dir, .line = line, .job_end = end_of_job});
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
