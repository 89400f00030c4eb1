// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The training step in two halves. compute(): plan, fetch, forward, loss, backward, sum over ranks. apply():
// the update. Everything else (summaries, evaluation, checkpoints, progress) belongs to the session.
//
// A session calls compute(), lets hooks decide, and calls apply(). A program with a loop of its own calls
// minimize(), or compute_gradients() and apply_gradients() if it changes gradients in between
// (docs/library.md).
//
// A trainer orders the step; its parts do the work, and have headers of their own:
//
//   StepEngine    computes gradients and losses: the replicas of all ranks, or workers and servers
//   StepSums      sums them over all ranks
//   StepNumbers   losses, metrics, the result of the step
//   StepUpdate    from summed gradients to new variables and their average
//
// With a gating (TrainerOptions::gating) other than graph, compute() updates variables as their sums come,
// and apply() does the rest. An error out of compute() may then leave variables of which some are updated;
// the trainer is not used any more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/function_ref.h"
#include "data/cursor.h"
#include "train/feed.h"
#include "train/step_result.h"

namespace lockstep {

class Communicator;
class Dataset;
class Device;
class Executor;
class Gradients;
class Optimizer;
class ServerTraining;
class StepMetrics;
class StepNumbers;
class StepObserver;
class StepPlan;
class StepSums;
class StepUpdate;
class VariableFingerprint;
enum class Gating;
struct ExecutorContext;
struct TrainerOptions;

class Trainer {
 public:
  /// All ranks. `gradients` and `control` are duplicates of the world. References outlive the trainer.
  Trainer(const ExecutorContext& context, Communicator& gradients, Communicator& control,
          const Dataset& dataset, const StepPlan& plan, Optimizer& optimizer, const TrainerOptions& options);
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  // Where the run stands.

  /// The variables are those of this step. Drops gradients that are computed and not applied.
  void set_position(std::int64_t step, Cursor cursor);
  std::int64_t global_step() const;
  Cursor cursor() const;
  /// The next one; between compute() and apply() the present one.
  Batch batch() const;
  /// The batch of a step, as StepResult::step; none of steps that it does not know any more.
  std::optional<Batch> batch_of(std::int64_t step) const;
  const StepPlan& plan() const;
  const Dataset& dataset() const;
  const ExecutorContext& context() const;
  Device& device() const;

  // One step.

  /// compute(), then apply(true). All ranks.
  StepResult minimize();
  /// Computes the step's numbers and its summed gradients, and makes the exchange in which all ranks receive
  /// them. Changes no variables but running statistics, unless gating() says otherwise. Called again before
  /// apply(), it computes the same step once more, from the statistics before it. All ranks. Throws
  /// Error(usage) where variables are updated already.
  StepResult compute();
  /// The gradients that compute() has summed, for a change before apply(): each rank gets all of them in host
  /// memory. Valid until apply() or compute(). After the first call in a step, apply() takes what they are
  /// then, and measures their norms again. All ranks, which make the same changes. Throws Error(usage) before
  /// compute(), and where it has updated variables.
  Gradients& gradients();
  /// compute() without updates, and gradients(). All ranks.
  Gradients& compute_gradients();
  /// apply(true) with the gradients of this trainer's compute_gradients(). Throws Error(usage) if they are
  /// another's, or were applied already. All ranks.
  StepResult apply_gradients(const Gradients& gradients);
  /// Whether the step, as StepResult::step, is computed, and can be once more.
  bool repeats(std::int64_t step) const;
  /// Between compute() and apply(false): computes the step's gradients once more for an observer. All ranks.
  void repeat(StepObserver& observer);
  /// Ends the step: clips the gradients, updates the variables and their moving average, and advances the
  /// step and the cursor. If `update` is false, the variables and running statistics stay as before the step.
  /// The same on all ranks. Throws Error(usage) if nothing is computed, or if it is too late for no update.
  void apply(bool update);
  /// compute() was called, and not yet apply().
  bool is_computed() const;
  /// Instead of apply(): the step was not computed. Running statistics are as before it. Nothing if none is
  /// computed. Not after updates of compute() (gating()).
  void forget_computed();

  // What changes steps.

  /// Of compute(): the option's, or graph where something needs all gradients before any variable changes.
  Gating gating() const;
  /// What that is; empty: nothing.
  const std::string& gating_reason() const;
  /// Before the first step: something else needs them. The same on all ranks.
  void wait_for_gradients(const std::string& reason);
  /// Changes the samples from the next step on; an empty function ends that. The same on all ranks.
  void set_feed(Feed feed);
  /// Sets the scale from the next step on: a power of two. Needs TrainerOptions::scales_loss. The same on all
  /// ranks.
  void set_loss_scale(double scale);
  /// Observes the steps from the next one on, until it is removed. An observer that is there already, or not
  /// there, changes nothing. It outlives its use.
  void add_observer(StepObserver& observer);
  void remove_observer(StepObserver& observer);

  // The moving average of the variables (StepUpdate::average()).

  /// Exchanges the variables with their average, which must have begun; a second call restores both. Between
  /// the two there is no step. All ranks.
  void exchange_average();
  /// Where the average has begun and its moving statistics are computed anew (AverageRule::recomputes):
  /// passes of the averaged variables over batches of the first epoch, whose mean the statistics become.
  /// Nothing if those of this step are there. `interruption` is called for each batch; if it returns anything
  /// but 0 on any rank, the statistics stay as they were, and the result is the largest value. All ranks.
  double recompute_statistics(FunctionRef<double()> interruption);

  // The parts.

  StepSums& sums();
  const StepSums& sums() const;
  StepNumbers& numbers();
  const StepNumbers& numbers() const;
  StepUpdate& update();
  const StepUpdate& update() const;
  /// The calls of a step, its microshards and their memory.
  const Executor& executor() const;
  /// The work of servers and workers; null: there are none.
  const ServerTraining* servers() const;
  /// Of the current variables.
  VariableFingerprint& fingerprint();
  /// StepNumbers::metrics(): the numbers of the last step by name; compute() publishes them.
  const StepMetrics& metrics() const;

  // Totals of the parts.

  /// Memory of gradients, their sums and what the update adds to them.
  std::size_t gradient_bytes() const;
  /// Includes what sparse tables sent in the last step. With servers: of a step of the last round, but for
  /// the meeting.
  std::int64_t bytes_sent_per_step() const;
  /// Time spent waiting for other ranks so far, in steps and in other uses of `control`.
  double communication_seconds() const;
  /// Time spent gathering samples so far, by thread 0.
  double input_seconds() const;

 private:
  struct Parts;
  StepResult compute(Gating gating);

  std::unique_ptr<Parts> parts_;
};

}  // namespace lockstep
