// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/command_train.h"

#include <chrono>
#include <cmath>
#include <csignal>
#include <filesystem>

#include "comm/agree.h"
#include "comm/startup_check.h"
#include "core/log.h"
#include "driver/checkpoint_schedule.h"
#include "driver/launch.h"
#include "driver/run_reports.h"
#include "driver/saver.h"
#include "driver/session.h"
#include "driver/trainer.h"
#include "driver/version.h"
#include "driver/warm_start.h"
#include "driver/yaml_node.h"
#include "io/atomic_file.h"
#include "io/checkpoint_store.h"
#include "io/run_lock.h"

namespace lockstep {

namespace {

/// Every `n` of something, where null and 0 mean never.
bool due(const Params& params, std::string_view name, std::int64_t count) {
  if (!params.has(name)) return false;
  const std::int64_t every = params.integer(name);
  return every > 0 && count % every == 0;
}

TrainerOptions trainer_options(const Config& config, const Session& session, int ranks, int threads) {
  TrainerOptions options;
  const Params& comm = config.comm;
  options.reducer.mode = comm.string("reduction") == "fast" ? GradientReducerOptions::Mode::fast
                                                            : GradientReducerOptions::Mode::tree;
  const std::string& overlap = comm.string("overlap");
  const bool wanted = overlap == "on" || (overlap == "auto" && session.cores_per_rank() > threads);
  options.reducer.overlap = wanted && ranks > 1 && session.may_overlap();
  if (overlap == "on" && ranks > 1 && !session.may_overlap())
    log_warning(
        "comm.overlap is on, but this MPI library does not allow a communication thread "
        "(MPI_THREAD_MULTIPLE)");
  options.bucket_first_bytes = static_cast<std::int64_t>(comm.real("bucket_first_mb") * (1 << 20));
  options.bucket_bytes = static_cast<std::int64_t>(comm.real("bucket_mb") * (1 << 20));
  options.stop_on_nan = config.train.boolean("stop_on_nan");
  return options;
}

/// One training run, from the session to the last checkpoint. All ranks.
class TrainingRun {
 public:
  TrainingRun(Session& session, const FoundCheckpoint& found, const std::string& run_dir, bool quiet)
      : session_(session),
        config_(session.config()),
        run_dir_(run_dir),
        quiet_(quiet),
        plan_({.num_samples = session.train_data().size(),
               .batch_size = config_.train.integer("batch_size"),
               .shards = session.shards(),
               .seed = session.seed(),
               .shuffle = config_.train.boolean("shuffle"),
               .drop_remainder = config_.train.boolean("drop_remainder")}),
        optimizer_(make_optimizer(config_.optimizer)),
        saver_(session.is_chief(), run_dir, saver_options(config_.checkpoint)),
        schedule_(checkpoint_triggers(config_.checkpoint), now()) {
    optimizer_->create_slots(cpu_device(), *session.model().variables);
    if (found.exists())
      restore_state(session.world(), found, *session.model().variables, optimizer_.get());
    else if (has_warm_start(config_))
      warm_start(session.world(), warm_start_options(config_), *session.model().variables);
    const int ranks = session.world().size(), threads = session.workers().pool().size();
    trainer_ = std::make_unique<Trainer>(session.executor_context(), session.gradients(), session.control(),
                                         session.train_data(), plan_, *optimizer_,
                                         trainer_options(config_, session, ranks, threads));
    if (found.exists())
      trainer_->set_position(found.header.global_step, {found.header.epoch, found.header.samples_consumed});
    if (session.eval_data() != nullptr)
      evaluation_ =
          std::make_unique<Evaluation>(session.executor_context(), session.control(), *session.eval_data(),
                                       config_.eval.has("batch_size") ? config_.eval.integer("batch_size")
                                                                      : config_.train.integer("batch_size"));
    if (config_.checkpoint.integer("keep_best") > 0) {
      if (!evaluation_)
        throw config_.checkpoint.error("keep_best", "there is no evaluation to compare checkpoints by",
                                       "Add an evaluation set to section data, or leave keep_best at 0.");
      if (config_.checkpoint.string("best_metric") == "accuracy" && !session.model().accuracy)
        throw config_.checkpoint.error("best_metric", "the model does not report accuracy",
                                       "Add accuracy to model.metrics, or compare by loss.");
    }
    session.workers().grow_scratch(
        std::max(trainer_->scratch_bytes(), evaluation_ ? evaluation_->scratch_bytes() : 0));
    restored_step_ = found.exists() ? found.header.global_step : -1;
    config_text_ = to_yaml(resolved_config(config_));
  }

  bool finished() const {
    if (config_.train.has("steps")) return trainer_->global_step() >= config_.train.integer("steps");
    return trainer_->cursor().epoch >= config_.train.integer("epochs");
  }

  int run() {
    require_room();
    describe();
    // Not before: a run that is finished already must not leave empty event files.
    reports_ = std::make_unique<RunReports>(session_.is_chief(), config_, run_dir_, trainer_->global_step(),
                                            session_.model().accuracy, quiet_);
    reports_->begin(progress());
    StepResult last{
        .step = trainer_->global_step(), .cursor = trainer_->cursor(), .epoch = trainer_->cursor().epoch};
    std::int64_t evaluated_step = -1;
    if (checkpoint_triggers(config_.checkpoint).at_start && restored_step_ != last.step) save_if_due(true);
    const std::int64_t check_every = config_.comm.integer("check_every_steps");
    while (!finished()) {
      set_phase(trainer_->global_step());
      last = shared_numeric([&] { return trainer_->step(); });
      samples_ += last.samples;
      loss_ = last.loss;
      reports_->step(last, progress());
      if (check_every > 0 && last.step % check_every == 0) check_drift(last.step);
      const std::int64_t epochs_done = last.epoch + 1;
      if (evaluation_ && ((last.epoch_ended && due(config_.eval, "every_epochs", epochs_done)) ||
                          due(config_.eval, "every_steps", last.step))) {
        evaluated(last);
        evaluated_step = last.step;
      }
      // The last one comes behind the last evaluation: a run that it calls finished has nothing left to do.
      if (!finished()) save_if_due(schedule_.due_by_count(last.step, last.epoch_ended, epochs_done));
    }
    if (evaluation_ && evaluated_step != last.step) evaluated(last);
    if (restored_step_ != last.step) {
      check_drift(last.step);
      save_last();
    }
    reports_->finish(progress());
    return 0;
  }

 private:
  template <typename Body>
  static StepResult shared_numeric(Body&& body) {
    try {
      return body();
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::numeric) throw;
      throw SharedError(error);  // judged on the reduced value: the same on all ranks
    }
  }

  void check_drift(std::int64_t step) {
    shared([&] {
      require_same_bits(session_.control(), session_.model().variables->hash(),
                        fmt::format("the variables after step {}", step).c_str());
    });
  }

  static void set_phase(std::int64_t step) {
    char text[40];
    *fmt::format_to_n(text, sizeof text - 1, "step {}", step + 1).out = '\0';
    lockstep::set_phase(text);
  }

  /// A checkpoint of broken variables would be what a resumed run begins with. The same on all ranks.
  void require_finite() const {
    for (const CheckpointTensor& tensor : state_tensors(*session_.model().variables, nullptr)) {
      const float* values = tensor.tensor.f32();
      for (std::int64_t i = 0; i < tensor.tensor.num_elements(); ++i)
        if (!std::isfinite(values[i]))
          throw SharedError(Error(
              ErrorKind::numeric,
              fmt::format(
                  "after step {}, {}[{}] is {}: training has diverged, and no checkpoint is written of it",
                  trainer_->global_step(), tensor.path, i, values[i]),
              "", "The checkpoints before it are intact. Try a smaller learning rate."));
    }
  }

  /// For a save that only the chief knows of: the loop's next check stops all ranks alike.
  bool is_finite() const {
    if (!config_.train.boolean("stop_on_nan")) return true;
    try {
      require_finite();
      return true;
    } catch (const SharedError&) {
      return false;
    }
  }

  CheckpointHeader header() const {
    return {.global_step = trainer_->global_step(),
            .epoch = trainer_->cursor().epoch,
            .samples_consumed = trainer_->cursor().samples_consumed,
            .shards = session_.shards(),
            .seed = session_.seed(),
            .config = config_text_,
            .lockstep_version = std::string(kVersion)};
  }

  std::vector<CheckpointTensor> state() const {
    return state_tensors(*session_.model().variables, optimizer_.get());
  }

  static double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }

  void require_room() {
    shared([&] {
      agree(
          session_.control(), [&] { saver_.prepare(header(), state(), &session_.workers().pool()); },
          "preparing for checkpoints");
    });
  }

  /// All ranks, after a step; `by_count` is the same on all. What is due while a checkpoint is still being
  /// written follows as soon as that is done.
  void save_if_due(bool by_count) {
    if (by_count && config_.train.boolean("stop_on_nan")) require_finite();
    for (const CheckpointOutcome& outcome : saver_.poll())
      schedule_.measured(outcome.blocked_seconds, outcome.write_seconds);
    if (!session_.is_chief()) return;
    save_due_ = save_due_ || by_count || schedule_.due_by_time(now());
    if (!save_due_ || saver_.busy() || (!by_count && !is_finite())) return;
    saver_.save(header(), state());
    schedule_.began(now());
    save_due_ = false;
  }

  /// All ranks.
  void save_last() {
    if (config_.train.boolean("stop_on_nan")) require_finite();
    lockstep::set_phase("the last checkpoint");
    const double limit = config_.comm.real("timeout_seconds");
    constexpr double kMeetSeconds = 5;
    shared([&] {
      saver_.finish(session_.control(), header(), state(),
                    limit > 0 ? std::min(limit / 4, kMeetSeconds) : kMeetSeconds);
    });
    for (const CheckpointOutcome& outcome : saver_.poll())
      if (!outcome.error && outcome.step == trainer_->global_step())
        reports_->note(fmt::format("checkpoint {}", outcome.path));
  }

  void evaluated(const StepResult& at) {
    const EvaluationResult result = evaluation_->run();
    reports_->evaluated(at, result);
    saver_.note_metric(at.step,
                       config_.checkpoint.string("best_metric") == "loss" ? result.loss : result.accuracy);
  }

  ProgressSample progress() const {
    ProgressSample sample;
    sample.step = trainer_->global_step();
    const std::int64_t per_epoch = plan_.steps_per_epoch();
    const bool by_steps = config_.train.has("steps");
    sample.epochs = by_steps ? 0 : config_.train.integer("epochs");
    sample.total_steps = by_steps ? config_.train.integer("steps") : sample.epochs * per_epoch;
    sample.epoch =
        std::min(trainer_->cursor().epoch + 1, by_steps ? trainer_->cursor().epoch + 1 : sample.epochs);
    sample.loss = loss_;
    sample.samples = samples_;
    sample.communication_seconds = trainer_->reduction_seconds() + session_.meetings().seconds_waited() +
                                   session_.control().seconds_waited();
    sample.input_seconds = trainer_->input_seconds();
    return sample;
  }

  void describe() const {
    if (!session_.is_chief()) return;
    const int ranks = session_.world().size(), threads = session_.workers().pool().size();
    log_info("lockstep {}: {} parameters, {} samples, batch {} in {} shards, {} rank{} x {} thread{}{}",
             kVersion, session_.model().variables->num_parameters(), session_.train_data().size(),
             plan_.spec().batch_size, session_.shards(), ranks, ranks == 1 ? "" : "s", threads,
             threads == 1 ? "" : "s", trainer_->overlaps() ? ", communication overlapped" : "");
    if (trainer_->global_step() > 0)
      log_info("continuing at step {}, epoch {}, sample {} of it", trainer_->global_step(),
               trainer_->cursor().epoch + 1, trainer_->cursor().samples_consumed);
  }

  Session& session_;
  const Config& config_;
  const std::string run_dir_;
  const bool quiet_;
  StepPlan plan_;
  std::unique_ptr<Optimizer> optimizer_;
  Saver saver_;
  CheckpointSchedule schedule_;
  bool save_due_ = false;  // the chief's
  std::unique_ptr<Trainer> trainer_;
  std::unique_ptr<Evaluation> evaluation_;
  std::unique_ptr<RunReports> reports_;
  std::string config_text_;
  std::int64_t restored_step_ = -1, samples_ = 0;
  double loss_ = 0;
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
  if (found.exists() && found.header.seed != static_cast<std::uint64_t>(config.general.integer("seed")))
    throw config.general.error(
        "seed",
        fmt::format("seed is {}, but the run began with {}", config.general.integer("seed"),
                    found.header.seed),
        "The order of the samples depends on it: leave it as it was, or start a new run directory.");
}

}  // namespace

int command_train(const CommandLine& line) {
  std::signal(SIGPIPE, SIG_IGN);  // who reads our messages may go away: no reason to end a run
  const Config config = load_config(line.target, line.overrides);
  check_config(config);
  const std::string run_dir = line.run_dir.empty() ? default_run_directory(line.target) : line.run_dir;
  return run_on_ranks(config.comm.real("timeout_seconds"), line.quiet, [&](CommEnvironment& environment) {
    Communicator& world = environment.world();
    const std::unique_ptr<RunLock> lock = take_run_directory(world, run_dir);
    const FoundCheckpoint found = shared([&] {
      const FoundCheckpoint checkpoint = find_checkpoint(world, run_dir, "");
      check_resume(line, config, checkpoint, run_dir);
      return checkpoint;
    });
    if (world.rank() == 0) log_to_file(run_dir + "/lockstep.log");
    Session session(environment, config, found.exists() ? std::optional(found.header.shards) : std::nullopt,
                    true, true);
    TrainingRun run = shared([&] { return TrainingRun(session, found, run_dir, line.quiet); });
    shared([&] {
      agree(
          world,
          [&] {
            if (world.rank() == 0)
              write_file_atomically(run_dir + "/config.yaml", to_yaml(resolved_config(config)));
          },
          "writing config.yaml");
    });
    if (run.finished() && found.exists()) {
      if (session.is_chief())
        log_info("this run is finished: step {} in {}", found.header.global_step, found.path);
      return 0;
    }
    return run.run();
  });
}

}  // namespace lockstep
