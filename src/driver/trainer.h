// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The training step and its loop: plan, fetch, forward, loss, backward, reduce, agree, update. What happens
// beside it (summaries, evaluation, checkpoints, progress) is the caller's, through on_step.
#pragma once

#include <functional>
#include <memory>

#include "comm/gradient_reducer.h"
#include "driver/batch_source.h"
#include "driver/executor.h"
#include "io/step_plan.h"
#include "optim/optimizer.h"

namespace lockstep {

/// The numbers of one finished step; the same on all ranks.
struct StepResult {
  std::int64_t step = 0;   ///< global steps done
  Cursor cursor;           ///< of the next batch
  std::int64_t epoch = 0;  ///< that the batch was in, from 0
  bool epoch_ended = false;
  std::int64_t samples = 0;
  double loss = 0, accuracy = 0;  ///< means over the batch
  double learning_rate = 0;
};

struct TrainerOptions {
  GradientReducerOptions reducer;
  std::int64_t bucket_first_bytes = std::int64_t{1} << 20, bucket_bytes = std::int64_t{25} << 20;
  bool stop_on_nan = true;
};

class Trainer {
 public:
  /// Collective: makes the communicators. `gradients` and `control` are duplicates of the world.
  Trainer(ExecutorContext context, Communicator& gradients, Communicator& control, const Dataset& dataset,
          const StepPlan& plan, Optimizer& optimizer, const TrainerOptions& options);

  void set_position(std::int64_t step, Cursor cursor) {
    step_ = step;
    cursor_ = cursor;
  }
  std::int64_t global_step() const { return step_; }
  Cursor cursor() const { return cursor_; }

  /// One step. All ranks. A loss that is not finite throws Error(numeric) on all ranks alike, before the
  /// update.
  StepResult step();

  std::size_t scratch_bytes() const { return executor_.scratch_bytes(); }
  std::size_t activation_bytes() const { return executor_.activation_bytes(); }
  std::size_t gradient_bytes() const { return reducer_.memory_bytes() + executor_.accumulator_bytes(); }
  std::int64_t bytes_sent_per_step() const { return reducer_.bytes_per_step(); }
  bool overlaps() const { return reducer_.overlaps(); }
  /// Waiting for gradients, so far.
  double reduction_seconds() const { return reducer_.seconds_blocked(); }
  double input_seconds() const { return source_.seconds(); }

 private:
  ExecutorContext context_;
  const StepPlan& plan_;
  Optimizer& optimizer_;
  bool stop_on_nan_;
  Executor executor_;
  BatchSource source_;
  GradientReducer reducer_;
  SmallSum sums_;
  std::int64_t step_ = 0;
  Cursor cursor_;
};

}  // namespace lockstep
