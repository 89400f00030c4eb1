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
// With a gating (TrainerOptions::gating) other than graph, compute() updates variables as their sums come,
// and apply() does the rest. An error out of compute() may then leave variables of which some are updated;
// the trainer is not used any more.
#pragma once

#include <array>
#include <memory>
#include <optional>

#include "comm/gradient_reducer.h"
#include "core/function_ref.h"
#include "core/range.h"
#include "data/step_plan.h"
#include "optim/gradient_clip.h"
#include "optim/moving_average.h"
#include "optim/optimizer.h"
#include "optim/regularizer.h"
#include "train/dataset_batch_source.h"
#include "train/executor.h"
#include "train/fed_batch_source.h"
#include "train/gradients.h"
#include "train/kernel_arithmetic.h"
#include "train/loss_report.h"
#include "train/matrix_sharing.h"
#include "train/run_schedules.h"
#include "train/server_training.h"
#include "train/step_metrics.h"
#include "train/step_observers.h"
#include "train/step_result.h"
#include "train/update_parts.h"
#include "train/variable_fingerprint.h"

namespace lockstep {

struct TrainerOptions {
  /// With an ownership (share_update()) ranks share the update, and the optimizer holds held_parts().
  GradientReducerOptions reducer;
  std::vector<RegularizationRule> regularization;
  ClipRule clip;
  bool scales_loss = false;           ///< set_loss_scale() will be called
  RunSchedules* schedules = nullptr;  ///< null: only those of the optimizer; outlives the trainer
  std::optional<AverageRule> average = {};
  std::int64_t bucket_first_bytes = std::int64_t{1} << 20, bucket_bytes = std::int64_t{25} << 20;
  Gating gating = Gating::graph;
  /// Servers hold the variables; the reducer's ownership is theirs. compute() then runs the steps up to the
  /// next meeting of all ranks, and updates after all but the last.
  std::optional<ServerTrainingOptions> servers = {};
};

class Trainer {
 public:
  /// All ranks. `gradients` and `control` are duplicates of the world. References outlive the trainer.
  Trainer(ExecutorContext context, Communicator& gradients, Communicator& control, const Dataset& dataset,
          const StepPlan& plan, Optimizer& optimizer, const TrainerOptions& options);

  /// The variables are those of this step. Drops gradients that are computed and not applied.
  void set_position(std::int64_t step, Cursor cursor) {
    step_ = step;
    cursor_ = cursor;
    computed_ = std::nullopt;
    statistics_fit_ = false;
    updated_ = 0;
  }
  std::int64_t global_step() const { return step_; }
  Cursor cursor() const { return cursor_; }
  /// The next one; between compute() and apply() the present one.
  Batch batch() const { return plan_.batch(cursor_); }
  const StepPlan& plan() const { return plan_; }
  const Dataset& dataset() const { return source_.dataset(); }
  const ExecutorContext& context() const { return context_; }
  /// The numbers of the last step by name; compute() publishes them.
  const StepMetrics& metrics() const { return metrics_; }
  /// Publishes the numbers of a step that an earlier job computed. The parts of its loss have no value.
  void publish(const StepResult& result);

  /// One step: compute(), then apply(true). All ranks.
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
  /// Between compute() and apply(false): computes the step's gradients once more for an observer. All ranks.
  void repeat(StepObserver& observer);
  /// Ends the step: clips the gradients, updates the variables and their moving average, and advances the
  /// step and the cursor. If `update` is false, the variables and running statistics stay as before the step.
  /// The same on all ranks. Throws Error(usage) if nothing is computed, or if it is too late for no update.
  void apply(bool update);
  /// compute() was called, and not yet apply().
  bool is_computed() const { return computed_.has_value(); }
  /// Instead of apply(): the step was not computed. Running statistics are as before it. Nothing if none is
  /// computed. Not after updates of compute() (gating()).
  void forget_computed();
  /// The numbers of the last compute(); step 0 before the first.
  const StepResult& last_result() const { return last_result_; }

  /// Of compute(): the option's, or graph where something needs all gradients before any variable changes.
  Gating gating() const { return gating_; }
  /// What that is; empty: nothing.
  const std::string& gating_reason() const { return gating_reason_; }
  /// Before the first step: something else needs them. The same on all ranks.
  void wait_for_gradients(const std::string& reason);
  /// The moving average of the variables, which apply() updates; null: none.
  MovingAverage* average() { return average_.get(); }
  const MovingAverage* average() const { return average_.get(); }
  /// Measured in each step; null: not wanted (ClipRule::noise_scale).
  NoiseScale* noise_scale() { return noise_.get(); }
  /// Exchanges the variables with their average, which must have begun; a second call restores both. Between
  /// the two there is no step. All ranks.
  void exchange_average();
  /// Where the average has begun and its moving statistics are computed anew (AverageRule::recomputes):
  /// passes of the averaged variables over batches of the first epoch, whose mean the statistics become.
  /// Nothing if those of this step are there. `interruption` is called for each batch; if it returns anything
  /// but 0 on any rank, the statistics stay as they were, and the result is the largest value. All ranks.
  double recompute_statistics(FunctionRef<double()> interruption);
  /// The next update waits for `event`, recorded by a pending reader of the variables on the device; null: no
  /// reader. The event outlives the update.
  void hold_update(const DeviceEvent* event) { read_ = event; }
  /// The fingerprint of the current variables; waits for the device.
  VariableFingerprint::Result fingerprint() { return fingerprint_.take(); }

  /// The step's small sums, and the values that each rank sends with them (SmallSum::set_rank_values).
  SmallSum& exchange() { return sums_; }
  /// Changes the samples from the next step on; an empty function ends that. The same on all ranks.
  void set_feed(Feed feed) {
    LOCKSTEP_CHECK(!servers_, "a step with servers is fed");
    fed_.set_feed(std::move(feed));
  }

  /// Sets the scale from the next step on: a power of two. Needs TrainerOptions::scales_loss. The same on all
  /// ranks.
  void set_loss_scale(double scale);
  bool scales_loss() const { return not_finite_.size_bytes() > 0; }

  /// Observes the steps from the next one on, until it is removed. An observer that is there already, or not
  /// there, changes nothing. It outlives its use.
  void add_observer(StepObserver& observer) {
    LOCKSTEP_CHECK(!servers_, "a step with servers is observed");
    observers_.add(observer);
    executor_.observe(observers_.any());
  }
  void remove_observer(StepObserver& observer) {
    observers_.remove(observer);
    executor_.observe(observers_.any());
  }
  /// The calls of a step, after fusion.
  const Graph::Calls& calls() const { return executor_.calls(); }
  /// The work of servers and workers; null: there are none.
  const ServerTraining* servers() const { return servers_.get(); }
  /// The microshards of this rank.
  Range own_shards() const { return executor_.own_shards(); }
  /// The gradient summed over the global batch: dense_elements() values, flat as in the variable store.
  /// Before clipping, which apply() does. Valid from compute() to the next compute(). Where ranks share the
  /// update: of this rank's parts only.
  const float* summed_gradients() { return reducer_.result(); }
  /// The same of sparse tables; null if there are none.
  const SparseGradients* sparse_gradients() const { return sparse_.get(); }
  /// Between compute() and the next compute(): where ranks share the update, each gets the gradients of all
  /// parts, so that summed_gradients() is whole. All ranks.
  void gather_gradients() {
    if (ownership_) reducer_.gather(reducer_.result(), "gradients for summaries");
  }

  /// Those of all rules that compute whole matrices.
  std::span<const std::unique_ptr<MatrixSharing>> matrices() const { return matrices_; }

  std::size_t scratch_bytes() const { return executor_.scratch_bytes(); }
  std::size_t activation_bytes() const { return executor_.activation_bytes(); }
  /// Ranks share the update: each has the sums of its parts.
  bool shares_update() const { return ownership_ != nullptr; }
  /// Includes the directions and work memory of rules that compute whole matrices.
  std::size_t gradient_bytes() const {
    std::size_t bytes = reducer_.memory_bytes() + executor_.accumulator_bytes() +
                        (sparse_ ? sparse_->memory_bytes() : 0) + (clip_ ? clip_->memory_bytes() : 0);
    for (const auto& matrices : matrices_) bytes += matrices->memory_bytes();
    if (servers_) bytes += servers_->memory_bytes();
    return bytes;
  }
  /// Includes what sparse tables sent in the last step. With servers: of a step of the last round, but for
  /// the meeting.
  std::int64_t bytes_sent_per_step() const {
    if (servers_) return round_bytes_;
    std::int64_t bytes = reducer_.bytes_per_step() + (sparse_ ? sparse_->bytes_sent() : 0);
    for (const auto& matrices : matrices_) bytes += matrices->bytes_sent();
    return bytes;
  }
  Device& device() const { return context_.device; }
  bool overlaps() const { return reducer_.overlaps(); }
  const GradientReducer& reducer() const { return reducer_; }
  /// Time spent waiting for other ranks so far, in steps and in other uses of `control`.
  double communication_seconds() const {
    return (servers_ ? servers_->seconds_waited() : 0) + reducer_.seconds_blocked() +
           context_.sync.seconds_waited() + control_.seconds_waited();
  }
  double input_seconds() const { return source_.seconds(); }

 private:
  StepResult compute(Gating gating);
  std::int64_t run_round();
  void update_on_server();
  void weigh_parts(std::span<const char> parts);
  void run_passes(const Batch& batch);
  void finish_sums();
  void choose_gating(const TrainerOptions& options);
  void attach_reducer();
  void update_released(std::int64_t released);
  void begin_update(bool update);
  void update_dense(int thread, Range part);
  void fill_leaves(const Batch& batch);
  void update_rest(int thread);
  void measure_for_update();
  void update_average(int thread);
  /// Calls then(range) for the thread's share of each range in own_.
  void for_own_parts(int thread, FunctionRef<void(Range)> then) const;
  void unscale();
  bool are_finite();
  bool agreed(bool finite);
  /// Waits for the device; nothing without clipping and measuring, and before the first step.
  std::optional<ClipTotals> clip_totals();
  void declare_metrics();

  ExecutorContext context_;
  const KernelArithmetic arithmetic_;
  Communicator& control_;
  const StepPlan& plan_;
  Optimizer& optimizer_;
  const std::shared_ptr<const Ownership> ownership_;  ///< null: every rank updates all variables
  std::vector<Range> own_;                            ///< dense elements that this rank updates, ascending
  std::unique_ptr<ServerTraining> servers_;           ///< null: no servers
  StepObservers observers_;
  Executor executor_;
  DatasetBatchSource source_;
  FedBatchSource fed_;
  GradientReducer reducer_;
  Regularizer regularizer_;
  LossReport report_;
  std::unique_ptr<NoiseScale> noise_;  ///< null: not measured
  std::vector<double> parts_;
  SmallSum sums_;
  VariableFingerprint fingerprint_;
  DeviceEvent unscaled_;
  const DeviceEvent* read_ = nullptr;  ///< the next update waits for it
  RunSchedules* const schedules_;      ///< may be null
  double loss_scale_ = 1;
  Buffer not_finite_;                        ///< pinned: a flag per lane; empty: gradients are not scaled
  std::unique_ptr<SparseGradients> sparse_;  ///< null: no table's gradient is sparse
  std::unique_ptr<GradientClip> clip_;       ///< null: gradients are neither clipped nor measured
  std::vector<std::unique_ptr<MatrixSharing>> matrices_;  ///< one per rule that needs whole matrices
  std::unique_ptr<MovingAverage> average_;                ///< null: none
  std::vector<char> finite_;                              ///< per rank, where ranks share the update
  Buffer held_;  ///< running statistics before the step or their computation, on the device
  std::array<double, 2> held_noise_{};    ///< the state of noise_ before the step
  std::unique_ptr<Gradients> gradients_;  ///< null: never asked for
  std::optional<StepResult> computed_;    ///< a step without its apply()
  StepResult last_result_;
  bool shown_ = false;           ///< gradients() was called in it
  bool statistics_fit_ = false;  ///< the average's moving statistics are those of its present variables
  Gating gating_ = Gating::graph;
  std::string gating_reason_;
  Gating passes_ = Gating::graph;  ///< of the passes in progress
  std::int64_t updated_ = 0;       ///< dense elements that the step has updated so far, from the first
  std::optional<float> weight_;    ///< of the average in the update in progress
  StepMetrics metrics_;
  struct {
    StepMetrics::Id loss, accuracy, parts, learning_rate, schedules, loss_scale, samples;
  } ids_{};
  std::int64_t step_ = 0;
  Cursor cursor_;
  std::int64_t round_bytes_ = 0;
  AbandonOnError abandon_on_error_;  ///< before the buffers above are freed
};

}  // namespace lockstep
