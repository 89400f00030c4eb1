// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The loop of a training in a program's own hands, with everything around it that `lockstep train` has: the
// newest checkpoint at the start, hooks, checkpoints, evaluations, summaries, signals, the status file, one
// clear end.
//
//   TrainingSession session = monitored_training_session(ranks, model, input,
//       {.model_dir = "runs/own", .train = {.batch_size = 64, .steps = 500}});
//   while (!session.should_stop()) session.run();
//   return session.finish().exit_code;
//
// It is the job of Estimator::train() with the loop left open, so the same model, samples and options have
// the same checkpoints, bit by bit. The halves of run() are compute_gradients() and apply_gradients(); the
// program may change the gradients in between.
//
// Every method is called on all ranks, in the same order, but for those that say "any rank". Errors are as in
// run_on_ranks(). After an error the session refuses further calls; a new one continues from the newest
// checkpoint.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/estimator.h"
#include "core/shape.h"
#include "session/variable_files.h"
#include "train/gradients.h"
#include "train/step_result.h"

namespace lockstep {

class MonitoredSession;
class RunContext;

/// A variable in host memory, as it is now. Valid until the next step.
struct NamedVariable {
  std::string_view name;
  Shape shape;
  std::span<const float> values;
};

class TrainingSession {
 public:
  /// The session of a model function, or of a configuration; see monitored_training_session().
  TrainingSession(CommEnvironment& ranks, ModelFunction model, const InputFunction& input, RunConfig run,
                  const TrainOptions& options, Params params);
  TrainingSession(CommEnvironment& ranks, Config config, std::string model_dir, const TrainOptions& options);
  TrainingSession(TrainingSession&&) noexcept;
  /// Reports a session that was not finished, and does not communicate: its last checkpoint is not written.
  ~TrainingSession();

  // The loop.

  /// Whether it ends: the run is at its end, a hook or a signal has stopped it, or there was nothing to do.
  /// The same on all ranks.
  bool should_stop();
  /// One step with its hooks. Throws Error(usage) if should_stop().
  StepResult run();
  /// The first half of a step: its gradients, which all ranks may change alike (train/gradients.h). Valid
  /// until apply_gradients(). Throws Error(usage) if should_stop().
  Gradients& compute_gradients();
  /// The second half, with these gradients. Where a hook has decided that the step updates nothing
  /// (train.on_nan, a loss scale), or an error goes back to the last checkpoint, they are dropped. Throws
  /// Error(usage) if they are not those of the last compute_gradients().
  StepResult apply_gradients(const Gradients& gradients);
  /// The end of all hooks, the last evaluation and the last checkpoint. After should_stop(), once. Says why
  /// it ended.
  TrainingOutcome finish();

  /// Any rank: all ranks stop one step later, at the latest.
  void request_stop(const std::string& reason);
  /// Any rank: the same, and the run is finished: if it is started again, it ends at once.
  void stop_for_good(const std::string& reason);
  /// Any rank: a checkpoint follows.
  void request_save();

  // Where it is.

  bool is_chief() const;
  std::int64_t global_step() const;
  /// The step of the checkpoint that the session began with; none: it began with initial values.
  std::optional<std::int64_t> restored_step() const;
  /// What the last evaluation found ("loss", "accuracy"); none: there was no evaluation yet, or there are
  /// none. Throws Error(usage) with the nearest name if evaluations do not give it.
  std::optional<double> evaluation(std::string_view metric) const;

  // Variables.

  /// Throws Error(usage) with the nearest names if there is none of this name.
  NamedVariable variable(std::string_view name) const;
  /// Sets all values of a variable, between two steps, on all ranks alike. Throws Error(usage) for another
  /// number of values, or a name that does not exist.
  void set_variable(std::string_view name, std::span<const float> values);
  /// Writes chosen variables, under names of their own, to a file with weights only, which the chief writes.
  void save_variables(const std::string& path, const VariableChoice& choice = {});
  /// Takes chosen variables from such a file, a checkpoint, or a run directory.
  void restore_variables(const std::string& path, const VariableChoice& choice = {});

  // Numbers of the program's own, in the event files and metrics.jsonl of the run, of the last step. Any
  // rank; those of the chief are written.

  void add_scalar(std::string_view name, double value);
  /// In event files only. NaN and infinities are counted under NAME/not_finite.
  void add_histogram(std::string_view name, std::span<const float> numbers);
  void add_histogram(std::string_view name, std::span<const double> numbers);

  /// What lies below (lockstep/session.h). Throws Error(usage) if there was nothing to do.
  MonitoredSession& monitored();
  RunContext& context();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// A session for a model function and an input function, which are those of an Estimator. `run`: the run
/// directory, when training ends, checkpoints, and so on; `options`: hooks, evaluations, init_fn. It has its
/// values when the function returns: those of the newest checkpoint, or initial ones. All ranks.
TrainingSession monitored_training_session(CommEnvironment& ranks, ModelFunction model,
                                           const InputFunction& input, RunConfig run,
                                           const TrainOptions& options = {});
/// The same for samples, and for layers with their loss and optimizer, as values.
TrainingSession monitored_training_session(CommEnvironment& ranks, ModelFunction model, Input input,
                                           RunConfig run, const TrainOptions& options = {});
TrainingSession monitored_training_session(CommEnvironment& ranks, EstimatorSpec model, Input input,
                                           RunConfig run, const TrainOptions& options = {});
/// The same for a configuration, which says all of it.
TrainingSession monitored_training_session(CommEnvironment& ranks, Config config, std::string model_dir,
                                           const TrainOptions& options = {});

/// For RunConfig::warm_start: a new run takes its values from a checkpoint, or the newest one of a run
/// directory. `names`: pairs of a name of this model and the name there, {"conv1/", "backbone/conv1/"}
/// (warm_start.rename).
sections::WarmStart init_from(std::string checkpoint,
                              std::vector<std::pair<std::string, std::string>> names = {});

}  // namespace lockstep
