// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/jobs/checkpoint_watch.h"

#include <chrono>
#include <filesystem>
#include <thread>

#include "comm/shared_error.h"
#include "core/log.h"
#include "core/timer.h"
#include "io/checkpoint_store.h"
#include "run/jobs/evaluation_job.h"
#include "session/progress.h"
#include "session/run_record.h"

namespace lockstep {

namespace {

/// How often ranks look and talk to each other.
constexpr double kLookSeconds = 0.25;
/// How often the log says that nothing new is there.
constexpr double kRemindSeconds = 600;

enum class Action : int { wait, evaluate, end, too_late };

/// What the chief knows about the run. Never throws: files that cannot be read now may be there later.
class Lookout {
 public:
  explicit Lookout(const CheckpointWatch& watch) : watch_(watch) {}

  Action look() {
    if (since_start_.seconds() < watch_.delay_seconds) return Action::wait;
    // The state first: what a run has saved before it ended is seen then.
    const bool ended = run_has_ended();
    if (const std::string now = newest(); now != seen_) {
      if (evaluations_ > 0 && since_evaluation_.seconds() < watch_.throttle_seconds && !ended)
        return Action::wait;
      seen_ = now;
      return Action::evaluate;
    }
    if (ended) return Action::end;
    if (since_news_.seconds() > watch_.most_wait_seconds) return Action::too_late;
    if (since_reminder_.seconds() > kRemindSeconds) {
      log_info("no new checkpoint in {} yet", watch_.run_dir);
      since_reminder_.restart();
    }
    return Action::wait;
  }
  void evaluation_begins() {
    since_evaluation_.restart();
    ++evaluations_;
  }
  /// The time of an evaluation is no waiting.
  void evaluation_ends() {
    since_news_.restart();
    since_reminder_.restart();
  }

 private:
  bool run_has_ended() const {
    try {
      const std::vector<JobRecord> jobs = read_jobs(watch_.run_dir);
      return !jobs.empty() && jobs.back().state == "finished";
    } catch (const Error&) {
      return false;
    }
  }
  /// A text that changes with the newest checkpoint; empty: there is none. It is when the state file was
  /// written, which names the newest one. A job that was killed while it wrote its first checkpoint may have
  /// left none.
  std::string newest() const {
    std::error_code failed;
    const auto time = std::filesystem::last_write_time(watch_.run_dir + "/checkpoint", failed);
    if (!failed) return fmt::format("{}", time.time_since_epoch().count());
    try {
      const std::vector<KeptCheckpoint> files = CheckpointStore(watch_.run_dir, 0).list();
      return files.empty() ? "" : files.back().path;
    } catch (const Error&) {
      return "";
    }
  }

  const CheckpointWatch& watch_;
  std::string seen_;
  std::int64_t evaluations_ = 0;
  Timer since_start_, since_evaluation_, since_news_, since_reminder_;
};

/// The value that the chief has. All ranks.
bool of_chief(Communicator& world, bool mine) {
  world.broadcast(&mine, sizeof mine, 0, "watching a run");
  return mine;
}

/// Nothing if training has removed the checkpoint in the meantime. All ranks.
std::optional<EvaluationOutcome> evaluate(Communicator& world, EvaluationRun& run,
                                          const FoundCheckpoint& found, bool averages) {
  try {
    return run.run(found, averages);
  } catch (const SharedError& error) {
    if (error.kind() != ErrorKind::checkpoint || of_chief(world, std::filesystem::exists(found.path))) throw;
    return std::nullopt;
  }
}

void wait(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

}  // namespace

WatchOutcome watch_checkpoints(CommEnvironment& environment, const CheckpointWatch& watch) {
  Communicator& world = environment.world();
  const bool is_chief = world.rank() == 0;
  shared([&] {
    if (!watch.name.empty()) EvaluationFiles::check_name(watch.name);  // before any wait
  });
  WatchOutcome outcome;
  Lookout lookout(watch);
  std::unique_ptr<EvaluationRun> run;
  std::unique_ptr<EvaluationFiles> files;
  std::string evaluated;  // on the chief
  if (is_chief && !std::filesystem::exists(watch.run_dir))
    log_warning("{} does not exist yet: waiting for it", watch.run_dir);
  for (;;) {
    if (outcome.interruption = agreed(world, signal_request(), "watching a run"); outcome.interruption.any())
      return outcome;
    Action action = is_chief ? lookout.look() : Action::wait;
    world.broadcast(&action, sizeof action, 0, "watching a run");
    if (action == Action::end) return outcome;
    if (action == Action::too_late)
      throw SharedError(
          Error(ErrorKind::checkpoint,
                fmt::format("no new checkpoint for {}", format_duration(watch.most_wait_seconds)),
                watch.run_dir, "Check the job that trains, or wait longer (--max-wait)."));
    if (action == Action::wait) {
      wait(kLookSeconds);
      continue;
    }
    const FoundCheckpoint found = shared([&] { return open_checkpoint(world, watch.run_dir, ""); });
    // The state file also changes when a metric is noted or an old checkpoint is removed.
    const std::string known = fmt::format("{} {}", found.path, found.header.digest);
    if (!found.exists() || of_chief(world, known == evaluated)) continue;
    if (!run)
      run = std::make_unique<EvaluationRun>(environment, shared([&] { return watch.config(); }),
                                            watch.run_dir, found);
    lookout.evaluation_begins();
    const std::optional<EvaluationOutcome> result = evaluate(world, *run, found, watch.averages);
    lookout.evaluation_ends();
    if (!result) continue;
    evaluated = known;
    ++outcome.evaluations;
    if (!watch.name.empty() && is_chief) {
      if (!files) files = std::make_unique<EvaluationFiles>(watch.run_dir, watch.name);
      files->record(*result);
    }
    if (watch.evaluated && !watch.evaluated(*result)) return outcome;
    if (watch.last_step && result->global_step >= *watch.last_step) return outcome;
  }
}

}  // namespace lockstep
