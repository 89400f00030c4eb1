// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/jobs/training_job.h"

#include <limits>

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
#include "session/run_last_words.h"

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

/// A job that has its run directory.
struct Started {
  const TrainingJob& job;
  const FoundCheckpoint& found;
  const RunChanges& changes;
  const RunLock* lock;
  JobRecorder& recorder;
};

AcceptedData accepted_data(const TrainingJob& job) {
  return job.accept_changes       ? AcceptedData::all
         : job.accept_new_samples ? AcceptedData::new_samples
                                  : AcceptedData::none;
}

/// The job with the files of its data where it reads them. All ranks.
int train(CommEnvironment& environment, const Config& config, const Started& started,
          TrainingOutcome& outcome) {
  JobRecorder& recorder = started.recorder;
  const std::string& run_dir = started.job.run_dir;
  const bool resumed = started.found.exists();
  RunContext context(environment, config, resumed ? std::optional(started.found.header.shards) : std::nullopt,
                     {.train = true,
                      .eval = true,
                      .updates = true,
                      .ranks = environment.world().size(),
                      .kept_in = resumed ? run_dir : std::string(),
                      .kept = started.found.header.kept,
                      .index_in = run_dir});
  if (const auto code = recorder.interrupted_at_start()) return *code;
  check_data_of_run(context, recorder, started.changes, started.found, accepted_data(started.job));
  TrainingAdditions additions = started.job.additions;
  const auto stop = std::make_shared<std::int64_t>(started.job.stop_at.value_or(0));
  if (started.job.stop_at || started.job.stop_at_epoch)
    additions.hooks.emplace_back(
        [stop, pauses = started.job.pauses] { return std::make_unique<StopOfJobHook>(stop, pauses); });
  const std::unique_ptr<Training> training = shared([&] {
    return make_training(context, {.run_dir = run_dir,
                                   .found = started.found,
                                   .record = started.job.record,
                                   .job_end = started.job.job_end,
                                   .status = recorder.status(),
                                   .lock = started.lock,
                                   .quiet = started.job.quiet,
                                   .additions = additions});
  });
  if (const auto epochs = started.job.stop_at_epoch) *stop = training->clock.step_of_epoch(*epochs);
  MonitoredSession& session = *training->session;
  if (resumed)  // what cannot be followed is not accepted first
    shared([&] { require_model(context.world(), started.found, *context.model().variables); });
  if (!started.changes.accepted.empty()) log_warning("{}", MessageLines{started.changes.accepted});
  session.start();
  write_run_description(context, run_dir, resumed,
                        recorder.number());  // a run that cannot start keeps its own
  log_training_start(context, *training);
  session.run();
  training->reports.close();
  log_training_end(context, *training->trainer);
  outcome.global_step = session.global_step();
  outcome.reason = session.final_reason();
  if (session.context().last_step().step > 0) outcome.loss = session.context().last_step().loss;
  const MetricBoard& board = session.context().eval_metrics();
  for (const std::string& name : board.names()) outcome.evaluation[name] = board.latest(name)->value;
  const TrainingOptions& end = config.train;
  outcome.finished =
      !session.interruption().any() &&
      (!outcome.reason.empty() ||
       (end.steps ? outcome.global_step >= *end.steps : session.context().cursor().epoch >= *end.epochs));
  const int code = recorder.end(session.interruption(), session.global_step(), session.final_reason());
  return session.interruption().reason == kPause ? 0 : code;
}

/// The job from its start to its exit code. All ranks.
int stage_and_train(CommEnvironment& environment, const Config& config, const Started& started,
                    TrainingOutcome& outcome) {
  if (const auto code = started.recorder.interrupted_at_start()) return *code;
  DataStage stage(environment, config, started.job.run_dir);
  return stage.run([&] {
    if (const auto code = started.recorder.interrupted_at_start()) return *code;
    return train(environment, config, started, outcome);
  });
}

SharedError nothing_left(const std::string& why, const std::string& run_dir) {
  return SharedError(Error(ErrorKind::config, why + ", so the changed configuration would have no effect",
                           run_dir,
                           "Give more train.epochs or train.steps, or begin another run (--run-dir)."));
}

}  // namespace

TrainingOutcome run_training_job(CommEnvironment& environment, Config config, const TrainingJob& job) {
  Communicator& world = environment.world();
  TrainingOutcome outcome{.loss = std::numeric_limits<double>::quiet_NaN()};
  const std::unique_ptr<RunLock> lock = take_run_directory(world, job.run_dir);
  const FoundCheckpoint found = checkpoint_to_resume(world, job.resume, config, job.run_dir);
  outcome.global_step = found.exists() ? found.header.global_step : 0;
  if (job.more_steps) {
    config = shared([&] {
      const std::string overrides[] = {fmt::format("train.steps={}", outcome.global_step + *job.more_steps),
                                       "train.epochs=null"};
      return changed_config(config, resolved_config(config), overrides);
    });
  }
  shared([&] {
    agree(
        world,
        [&] {
          if (lock) log_to_file(job.run_dir + "/lockstep.log");
        },
        "opening the log");
  });
  const JobSpec spec{job.run_dir, hash_of_config(resolved_config_text(config)),
                     config.train.max_jobs_without_progress};
  const RunChanges changes = changes_of_run(world, config, found, job.run_dir, job.accept_changes);
  if (const std::string why = why_finished(world, config.train, spec, found, changes.end); !why.empty()) {
    if (changes.result) throw nothing_left(why, job.run_dir);
    if (world.rank() == 0) log_info("{}", why);
    outcome.reason = why;
    outcome.finished = true;
    return outcome;
  }
  if (job.stop_at && found.exists() && outcome.global_step >= *job.stop_at) {
    outcome.reason = fmt::format("the run is at step {} already", outcome.global_step);
    return outcome;
  }
  if (job.stop_at_epoch && found.exists() && found.header.epoch >= *job.stop_at_epoch) {
    outcome.reason = fmt::format("the run has {} epochs already", found.header.epoch);
    return outcome;
  }
  JobRecorder recorder(world, spec, found);
  // The status of a run directory that this run has lost is not its own.
  const auto failed = [&](int code, const char* why) {
    if (lock && lock->lost().empty()) recorder.failed(code, why);
  };
  try {
    outcome.exit_code =
        stage_and_train(environment, config, {job, found, changes, lock.get(), recorder}, outcome);
    return outcome;
  } catch (const Error& error) {
    failed(exit_code(error.kind()), error.what());
    // Else the rank that ends all of them writes it (run_last_words.h).
    if (lock && (world.size() == 1 || dynamic_cast<const SharedError*>(&error) != nullptr))
      note_error_in_log(job.run_dir, error_text(error));
    throw;
  } catch (const std::exception& error) {
    failed(1, error.what());
    throw;
  }
}

}  // namespace lockstep
