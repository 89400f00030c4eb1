// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// From the summed gradients of a step to new variables: the loss scale is taken off, regularization is added,
// norms are measured; then gradients are clipped, the optimizer updates the variables, and their moving
// average follows. One pass over flat memory, a slice per thread.
//
// The update of dense variables may begin while gradients are still summed (update_to(), ReplicaEngine).
// Where ranks share the update, each updates its parts, and all get the variables of all.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/function_ref.h"
#include "core/range.h"
#include "optim/gradient_clip.h"
#include "optim/moving_average.h"
#include "train/executor_context.h"
#include "train/gradient_unscaler.h"
#include "train/matrix_sharing.h"

namespace lockstep {

class NumberWatch;
class Optimizer;
class Regularizer;
class RunSchedules;
class StepSums;
struct StepState;
struct TrainerOptions;

class StepUpdate {
 public:
  /// All ranks. References outlive the update.
  StepUpdate(const ExecutorContext& context, Communicator& control, Optimizer& optimizer,
             Regularizer& regularizer, StepSums& sums, const TrainerOptions& options);
  ~StepUpdate();

  // The gradients of a step, for the trainer and its engine.

  /// Before the passes of a step, which change moving statistics: sets the numbers that follow schedules,
  /// begins the average with what the variables and statistics are now, if it is its turn, and the penalty of
  /// regularization.
  void prepare(std::int64_t step);
  /// The numbers that follow schedules, alone.
  void set_schedules(std::int64_t step);
  /// When the gradients of the step after `step` steps are summed: takes off the loss scale, adds regularization, and measures norms.
  /// Returns the loss of regularization. Does not wait for a device's gradients. All ranks.
  double finish_gradients(std::int64_t step);
  /// After finish_gradients(): whether all gradients are finite, the same on all ranks; true where no loss
  /// scale is used. All ranks.
  bool gradients_are_finite() { return unscaler_ == nullptr || unscaler_->are_finite(); }
  /// After the exchange of a step: what is known of its numbers. `now`: of this step in any case, also where
  /// a device must be waited for. The same on all ranks.
  StepState state(bool now);
  /// After step `step`: what state() has not told, because nobody waited for it. Waits for a device.
  StepState state_after(std::int64_t step);
  /// Measures norms again, of gradients that were changed. All ranks.
  void measure_again();

  // The update of a step, in this order.

  /// Updates the dense variables from where the last call ended up to the flat element `end`.
  void update_to(std::int64_t end, std::int64_t step);
  /// How far the step is updated: dense elements, from the first.
  std::int64_t updated() const { return updated_; }
  /// Begins the end of step `step`, unless update_to() has begun it. `updates`: run() follows, and else
  /// leave_out().
  void begin(std::int64_t step, bool updates);
  /// Updates everything that update_to() has not updated. All ranks.
  void run();
  /// The variables stay as they are; their average still approaches them.
  void leave_out();
  void end();
  /// Drops what is begun: the variables are other ones.
  void drop();
  /// The update of a step within an engine's round, of what this rank holds, with everything before it.
  void run_on_server(std::int64_t step);
  /// In the place of run_on_server() on a rank without variables of its own: the update counts.
  void count_on_worker(std::int64_t step);

  // What it consists of.

  const Optimizer& optimizer() const { return optimizer_; }
  /// The moving average of the variables; null: none.
  MovingAverage* average() { return average_.get(); }
  const MovingAverage* average() const { return average_.get(); }
  /// Clips and measures; null: gradients are neither clipped nor measured.
  GradientClip* clip() { return clip_.get(); }
  /// The work of all rules that compute whole matrices.
  std::span<const std::unique_ptr<MatrixSharing>> matrices() const { return matrices_; }
  const RunSchedules* schedules() const { return schedules_; }
  bool scales_loss() const { return unscaler_ != nullptr; }
  double loss_scale() const { return loss_scale_; }
  /// For Trainer::set_loss_scale().
  void set_loss_scale(double scale);

  /// The next update waits for `event`, recorded by a pending reader of the variables on the device; null: no
  /// reader. The event outlives the update.
  void hold(const DeviceEvent* event) { read_ = event; }
  /// Exchanges the variables with their average, which must have begun before step `step`; a second call
  /// restores both. Between the two there is no step. All ranks.
  void exchange_average(std::int64_t step);

  std::int64_t bytes_sent_per_step() const;
  /// Includes the directions and work memory of rules that compute whole matrices.
  std::size_t memory_bytes() const;

 private:
  UpdateContext update_context() const {
    return {context_.variables, context_.kernels, context_.device, context_.pool, context_.lanes};
  }
  void begin_update(std::int64_t step, bool updates);
  void begin_average(std::int64_t step);
  /// Of the variables and their average on the device (hold()).
  void wait_for_reader();
  void update_dense(int thread, Range part);
  void update_rest(int thread);
  void measure_for_update();
  void update_average(int thread);

  const ExecutorContext& context_;
  Optimizer& optimizer_;
  Regularizer& regularizer_;
  StepSums& sums_;
  RunSchedules* const schedules_;               ///< may be null
  std::unique_ptr<GradientUnscaler> unscaler_;  ///< null: the loss is not scaled
  double loss_scale_ = 1;
  std::unique_ptr<GradientClip> clip_;
  std::unique_ptr<NumberWatch> watch_;
  std::unique_ptr<MovingAverage> average_;
  std::vector<std::unique_ptr<MatrixSharing>> matrices_;  ///< one per rule that needs whole matrices
  const DeviceEvent* read_ = nullptr;                     ///< the next update waits for it
  std::int64_t updated_ = 0;
  std::optional<float> weight_;  ///< of the average in the update in progress
};

}  // namespace lockstep
