// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/jobs/training_job.h"

#include <exception>
#include <limits>
#include <utility>

#include "comm/agree.h"
#include "comm/shared_error.h"
#include "config/error_text.h"
#include "core/log.h"
#include "core/message_lines.h"
#include "run/setup/data_stage.h"
#include "run/setup/run_changes.h"
#include "run/setup/training_directory.h"
#include "run/setup/training_log.h"
#include "session/hook_context.h"
#include "session/job_recorder.h"
#include "session/monitored_session.h"
#include "session/run_last_words.h"
#include "train/trainer.h"

namespace lockstep {

namespace {

constexpr int kPause = static_cast<int>(InterruptionReason::pause);

/// Ends this job, not the run, at a step.
class StopOfJobHook final : public Hook {
 public:
  /// `step` is set before the session starts.
  StopOfJobHook(std::shared_ptr<const std::int64_t> step, bool pauses)
      : Hook("stop_of_job"), step_(std::move(step)), pauses_(pauses) {}
  void begin(HookContext& context) override {
    if (pauses_)
      context.interruptions().add([this] {
        return due_ ? InterruptionRequest{Interruption::requeue, kPause} : InterruptionRequest{};
      });
  }
  void before_run(HookContext& context) override { due_ = context.global_step() + 1 >= *step_; }
  void after_run(HookContext& context, const StepResult& result) override {
    if (!pauses_ && result.step >= *step_) context.stop_now();
  }

 private:
  std::shared_ptr<const std::int64_t> step_;
  bool pauses_, due_ = false;
};

/// The log of the run has what this job says, and nothing of what a program does after it.
struct LogOfRun {
  LogOfRun() = default;
  ~LogOfRun() { end_log_file(); }
  LogOfRun(const LogOfRun&) = delete;
  LogOfRun& operator=(const LogOfRun&) = delete;
};

AcceptedData accepted_data(const TrainingJob& job) {
  return job.accept_changes       ? AcceptedData::all
         : job.accept_new_samples ? AcceptedData::new_samples
                                  : AcceptedData::none;
}

SharedError nothing_left(const std::string& why, const std::string& run_dir) {
  return SharedError(Error(ErrorKind::config, why + ", so the changed configuration would have no effect",
                           run_dir,
                           "Give more train.epochs or train.steps, or begin another run (--run-dir)."));
}

/// With the steps of job.more_steps, counted from the checkpoint.
Config with_more_steps(Config config, const TrainingJob& job, std::int64_t global_step) {
  if (!job.more_steps) return config;
  return shared([&] {
    const std::string overrides[] = {fmt::format("train.steps={}", global_step + *job.more_steps),
                                     "train.epochs=null"};
    return changed_config(config, resolved_config(config), overrides);
  });
}

}  // namespace

/// In the order in which they are made.
struct OpenTrainingJob::Parts {
  Parts(CommEnvironment& ranks, Config options, const TrainingJob& what);
  void open();
  bool has_nothing_to_do();
  void make_context();
  void make_session();
  bool interrupted_at_start();
  void record(const Error& error);
  void record(const std::exception& error);
  std::string why_it_ended() const;
  /// Runs `body`; its errors are recorded.
  void guarded(FunctionRef<void()> body);
  JobSpec spec() const {
    return {job.run_dir, hash_of_config(resolved_config_text(config)),
            config.train.max_jobs_without_progress};
  }

  CommEnvironment& environment;
  Communicator& world;
  const TrainingJob job;
  TrainingOutcome outcome{.loss = std::numeric_limits<double>::quiet_NaN()};
  const LogOfRun log;
  std::unique_ptr<RunLock> lock;  ///< null on ranks other than the chief
  FoundCheckpoint found;
  Config config;
  RunChanges changes;
  std::optional<JobRecorder> recorder;  ///< none: there is nothing to do
  std::optional<DataStage> stage;
  std::optional<RunContext> context;
  std::shared_ptr<std::int64_t> stop;  ///< the step at which the job ends
  std::unique_ptr<Training> training;
  bool finished = false;
};

OpenTrainingJob::Parts::Parts(CommEnvironment& ranks, Config options, const TrainingJob& what)
    : environment(ranks),
      world(ranks.world()),
      job(what),
      lock(take_run_directory(world, job.run_dir)),
      found(checkpoint_to_resume(world, job.resume, options, job.run_dir)),
      config(with_more_steps(std::move(options), job, found.exists() ? found.header.global_step : 0)),
      stop(std::make_shared<std::int64_t>(job.stop_at.value_or(0))) {
  outcome.global_step = found.exists() ? found.header.global_step : 0;
  shared([&] {
    agree(
        world,
        [&] {
          if (lock) log_to_file(job.run_dir + "/lockstep.log");
        },
        "opening the log");
  });
  changes = changes_of_run(world, config, found, job.run_dir, job.accept_changes);
  if (has_nothing_to_do()) return;
  recorder.emplace(world, spec(), found);
  guarded([&] { open(); });
}

bool OpenTrainingJob::Parts::has_nothing_to_do() {
  if (const std::string why = why_finished(world, config.train, spec(), found, changes.end); !why.empty()) {
    if (changes.result) throw nothing_left(why, job.run_dir);
    if (world.rank() == 0) log_info("{}", why);
    outcome.reason = why;
    outcome.finished = true;
  } else if (job.stop_at && found.exists() && outcome.global_step >= *job.stop_at) {
    outcome.reason = fmt::format("the run is at step {} already", outcome.global_step);
  } else if (job.stop_at_epoch && found.exists() && found.header.epoch >= *job.stop_at_epoch) {
    outcome.reason = fmt::format("the run has {} epochs already", found.header.epoch);
  }
  return !outcome.reason.empty();
}

bool OpenTrainingJob::Parts::interrupted_at_start() {
  const auto code = recorder->interrupted_at_start();
  if (!code) return false;
  outcome.exit_code = *code;
  outcome.reason = fmt::format("{}, before the first step", recorder->reason());
  return true;
}

/// From the files of the data to a session that has its values. All ranks.
void OpenTrainingJob::Parts::open() {
  if (interrupted_at_start()) return;
  stage.emplace(environment, config, job.run_dir);
  if (interrupted_at_start()) return;
  make_context();
  if (interrupted_at_start()) return;
  make_session();
}

void OpenTrainingJob::Parts::make_context() {
  const bool resumed = found.exists();
  context.emplace(environment, config, resumed ? std::optional(found.header.shards) : std::nullopt,
                  RunNeeds{.train = true,
                           .eval = true,
                           .updates = true,
                           .ranks = environment.world().size(),
                           .kept_in = resumed ? job.run_dir : std::string(),
                           .kept = found.header.kept,
                           .index_in = job.run_dir});
}

void OpenTrainingJob::Parts::make_session() {
  const bool resumed = found.exists();
  check_data_of_run(*context, *recorder, changes, found, accepted_data(job));
  TrainingAdditions additions = job.additions;
  if (job.stop_at || job.stop_at_epoch)
    additions.hooks.emplace_back(
        [at = stop, pauses = job.pauses] { return std::make_unique<StopOfJobHook>(at, pauses); });
  training = shared([&] {
    return make_training(*context, {.run_dir = job.run_dir,
                                    .found = found,
                                    .record = job.record,
                                    .job_end = job.job_end,
                                    .status = recorder->status(),
                                    .lock = lock.get(),
                                    .quiet = job.quiet,
                                    .additions = additions});
  });
  if (const auto epochs = job.stop_at_epoch) *stop = training->clock.step_of_epoch(*epochs);
  if (resumed)  // what cannot be followed is not accepted first
    shared([&] { require_model(context->world(), found, *context->model().variables); });
  if (!changes.accepted.empty()) log_warning("{}", MessageLines{changes.accepted});
  training->session->start();
  write_run_description(*context, job.run_dir, resumed,
                        recorder->number());  // a run that cannot start keeps its own
  log_training_start(*context, *training);
}

/// The loop has ended without an interruption.
std::string OpenTrainingJob::Parts::why_it_ended() const {
  const TrainingOptions& end = config.train;
  const MonitoredSession& session = *training->session;
  const std::int64_t epochs = training->trainer->cursor().epoch;
  if (!session.final_reason().empty()) return session.final_reason();
  if (end.steps && outcome.global_step >= *end.steps)
    return fmt::format("the run is at its end, step {}", outcome.global_step);
  if (end.epochs && epochs >= *end.epochs)
    return fmt::format("the run is at its end, {} epoch{}", epochs, epochs == 1 ? "" : "s");
  if ((job.stop_at || job.stop_at_epoch) && outcome.global_step >= *stop)
    return fmt::format("the job was to end at step {}", *stop);
  return session.reason().empty() ? "the loop was ended without a reason" : session.reason();
}

void OpenTrainingJob::Parts::record(const Error& error) {
  // The status of a run directory that this run has lost is not its own.
  if (lock && lock->lost().empty()) recorder->failed(exit_code(error.kind()), error.what());
  // Else the rank that ends all of them writes it (run_last_words.h).
  if (lock && (world.size() == 1 || dynamic_cast<const SharedError*>(&error) != nullptr))
    note_error_in_log(job.run_dir, error_text(error));
}

void OpenTrainingJob::Parts::record(const std::exception& error) {
  if (lock && lock->lost().empty()) recorder->failed(1, error.what());
}

void OpenTrainingJob::Parts::guarded(FunctionRef<void()> body) {
  if (finished)
    throw SharedError(Error(ErrorKind::usage, "the session has ended, or an error has ended it", job.run_dir,
                            "Make a new one: it continues from the newest checkpoint."));
  // An error frees what was computed with while it is on its way (AbandonOnError).
  struct FreeOnError {
    Parts& parts;
    const int before = std::uncaught_exceptions();
    ~FreeOnError() {
      if (std::uncaught_exceptions() <= before) return;
      parts.training.reset();
      parts.context.reset();
    }
  };
  const auto work = [&] {
    const FreeOnError free{*this};
    body();
    return 0;
  };
  try {
    if (stage)
      stage->run(work);
    else
      work();
  } catch (const Error& error) {
    finished = true;
    record(error);
    throw;
  } catch (const std::exception& error) {
    finished = true;
    record(error);
    throw;
  }
}

OpenTrainingJob::OpenTrainingJob(CommEnvironment& environment, Config config, const TrainingJob& job)
    : parts_(std::make_unique<Parts>(environment, std::move(config), job)) {}

OpenTrainingJob::~OpenTrainingJob() {
  Parts& parts = *parts_;
  if (parts.finished || parts.training == nullptr || std::uncaught_exceptions() > 0) return;
  log_error("{}: the session was given up before its end: its last checkpoint is not written",
            parts.job.run_dir);
  if (parts.lock && parts.lock->lost().empty())
    parts.recorder->failed(1, "the session was given up before its end");
}

MonitoredSession* OpenTrainingJob::session() {
  return parts_->training != nullptr ? parts_->training->session.get() : nullptr;
}

bool OpenTrainingJob::has_ended() const { return parts_->finished; }

RunContext* OpenTrainingJob::context() { return parts_->training != nullptr ? &*parts_->context : nullptr; }

void OpenTrainingJob::run(FunctionRef<void(MonitoredSession&)> part) {
  parts_->guarded([&] { part(*parts_->training->session); });
}

TrainingOutcome OpenTrainingJob::finish() {
  Parts& parts = *parts_;
  TrainingOutcome& outcome = parts.outcome;
  if (parts.training == nullptr && !parts.finished) return outcome;  // there was nothing to do
  if (parts.finished) parts.guarded([] {});
  MonitoredSession& session = *parts.training->session;
  if (!session.should_stop())
    throw SharedError(Error(ErrorKind::usage, "the session is ended before should_stop() says true",
                            parts.job.run_dir,
                            "Call request_stop(), and go on until should_stop() says true."));
  parts.guarded([&] {
    session.finish();
    parts.training->reports.close();
    log_training_end(*parts.context, *parts.training->trainer);
    outcome.global_step = session.global_step();
    if (session.context().last_step().step > 0) outcome.loss = session.context().last_step().loss;
    const MetricBoard& board = session.context().eval_metrics();
    for (const std::string& name : board.names()) outcome.evaluation[name] = board.latest(name)->value;
    const TrainingOptions& end = parts.config.train;
    const InterruptionRequest& interruption = session.interruption();
    outcome.finished =
        !interruption.any() &&
        (!session.final_reason().empty() ||
         (end.steps ? outcome.global_step >= *end.steps : session.context().cursor().epoch >= *end.epochs));
    const int code = parts.recorder->end(interruption, session.global_step(), session.final_reason());
    outcome.exit_code = interruption.reason == kPause ? 0 : code;
    outcome.reason = interruption.any() ? parts.recorder->reason() : parts.why_it_ended();
  });
  parts.finished = true;
  return outcome;
}

TrainingOutcome run_training_job(CommEnvironment& environment, Config config, const TrainingJob& job) {
  OpenTrainingJob open(environment, std::move(config), job);
  if (open.session() != nullptr)
    open.run([](MonitoredSession& session) {
      while (!session.should_stop()) session.run_step();
    });
  return open.finish();
}

}  // namespace lockstep
