// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/sweep/trial_run.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <new>

#include "api/estimator.h"
#include "comm/agree.h"
#include "comm/shared_error.h"
#include "core/error.h"
#include "core/timer.h"
#include "io/atomic_file.h"
#include "io/checkpoint.h"
#include "run/jobs/training_job.h"
#include "session/hook_context.h"

namespace lockstep {

namespace {

constexpr double kLookSeconds = 1;

/// Stops a trial when the sweep is to stop.
class SweepStopHook final : public Hook {
 public:
  explicit SweepStopHook(std::string path)
      : Hook("sweep_stop", HookScope::chief_only), path_(std::move(path)) {}
  void begin(HookContext& context) override {
    context.interruptions().add([this]() -> InterruptionRequest {
      if (looked_ && since_.seconds() < kLookSeconds) return {};
      looked_ = true;
      since_.restart();
      return look_for_stop_file(path_);
    });
  }

 private:
  std::string path_;
  bool looked_ = false;
  Timer since_;
};

/// What the settings of a trial can be to blame for.
bool is_of_trial(ErrorKind kind, bool alone) {
  return kind == ErrorKind::config || kind == ErrorKind::data || kind == ErrorKind::numeric ||
         kind == ErrorKind::usage || (alone && kind == ErrorKind::device);
}

TrialOutcome train_and_evaluate(CommEnvironment& group, const Config& config, const TrialJob& job) {
  TrainingJob training{.run_dir = job.run_dir, .job_end = job.job_end, .quiet = true, .pauses = true};
  (job.in_epochs ? training.stop_at_epoch : training.stop_at) = job.end;
  training.additions.hooks.emplace_back([&] { return std::make_unique<SweepStopHook>(job.stop_file); });
  const TrainingOutcome trained = Estimator(group, config, job.run_dir).train(std::move(training));
  if (trained.exit_code == exit_code(Interruption::requeue) ||
      trained.exit_code == exit_code(Interruption::user))
    return {.exit_code = trained.exit_code};
  if (trained.exit_code != 0) return {.error = fmt::format("it makes no progress: {}", trained.reason)};
  const EvaluationOutcome evaluated =
      Estimator(group, config, job.run_dir).evaluate(EvaluateOptions{.averages = config.eval.averages});
  TrialOutcome outcome{.result = {.step = evaluated.global_step, .value = evaluated.value(job.metric)}};
  if (!std::isfinite(outcome.result.value)) {
    outcome.error = fmt::format("{} of the evaluation at step {} is {}", job.metric, evaluated.global_step,
                                outcome.result.value);
    return outcome;
  }
  shared([&] {
    agree(
        group.world(),
        [&] {
          if (group.world().rank() == 0)
            outcome.result.digest = CheckpointFile(evaluated.checkpoint).header().digest;
        },
        "reading the digest of a checkpoint");
  });
  return outcome;
}

}  // namespace

TrialOutcome run_trial(CommEnvironment& group, const Config& config, const TrialJob& job) {
  const bool alone = group.world().size() == 1;
  group.restart_timeout();
  try {
    return train_and_evaluate(group, config, job);
  } catch (const SharedError& error) {
    if (!is_of_trial(error.kind(), alone)) throw;
    return {.error = error.what()};
  } catch (const Error& error) {
    if (!alone || !is_of_trial(error.kind(), alone)) throw;
    return {.error = error.what()};
  } catch (const std::bad_alloc&) {
    if (!alone) throw;
    return {.error = "out of memory"};
  }
}

void write_stop_file(const std::string& path, Interruption kind) {
  write_file_atomically(path, kind == Interruption::requeue ? "requeue\n" : "user\n");
}

InterruptionRequest look_for_stop_file(const std::string& path) {
  std::error_code code;
  if (!std::filesystem::exists(path, code)) return {};
  const bool requeue = read_whole_file(path).starts_with("requeue");
  return {requeue ? Interruption::requeue : Interruption::user,
          static_cast<int>(InterruptionReason::stop_file)};
}

}  // namespace lockstep
