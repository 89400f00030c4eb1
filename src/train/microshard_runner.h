// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Carries out a phase's actions for one microshard: fetch, forward and backward calls of the layers, losses,
// and what becomes of the gradients. It owns the slots of the microshards in flight. It decides nothing about
// order (ExecutionPlan) and communicates nothing (SyncPoint, GradientReducer).
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/range.h"
#include "train/execution_plan.h"
#include "train/executor_context.h"
#include "train/gradient_accumulator.h"
#include "train/input_stage.h"
#include "train/loss_stage.h"
#include "train/microshard_slot.h"
#include "train/noise_scale.h"
#include "train/sparse_gradients.h"
#include "train/step_observer.h"
#include "train/sync_point.h"

namespace lockstep {

class MicroshardRunner {
 public:
  /// What the executor owns; all of it outlives the runner.
  struct Parts {
    const ExecutorContext& context;
    const Graph::Calls& calls;
    const MemoryPlan& memory;
    const ExecutionPlan& plan;
    std::span<const GradientRange> gradients;  ///< by operation
    /// The synchronisation points by operation; null where there is none.
    std::span<const std::unique_ptr<SyncPoint>> sync_points;
    LossStage& loss;
    InputStage* stage;  ///< null: samples are fetched to where they are used
    bool training;
  };
  explicit MicroshardRunner(const Parts& parts);

  /// Sets, for training, where gradients go. `sparse` may be null.
  void attach(const GradientAccumulator& accumulator, SparseGradients* sparse) {
    accumulator_ = &accumulator;
    sparse_ = sparse;
  }
  /// Sets, for training, what measures each microshard's gradients.
  void measure(NoiseScale* noise) { noise_ = noise; }
  /// Sets the observer; null: none.
  void observe(StepObserver* observer) { observer_ = observer; }
  std::size_t memory_bytes() const { return parts_.memory.total_bytes() * slots_.size(); }

  /// Called before the phases of a batch. Where the loss is divided by a count of labels, the labels of all
  /// own microshards are counted here, and all ranks agree on the sum.
  void begin(const BatchRun& run);
  /// Runs a phase on the worker, for each of its microshards in order.
  void run(const ExecutionPlan::Phase& phase, const BatchRun& run, int worker, int shard);

 private:
  using Phase = ExecutionPlan::Phase;
  /// A microshard's part in a phase.
  struct Task {
    const Phase& phase;
    const BatchRun& run;
    int worker;
    Lane lane;
    MicroshardSlot& slot;
    const Microshard& microshard;  ///< of the slot
  };
  /// Where a call's gradients of variables go.
  struct GradientPlace {
    float* address = nullptr;  ///< of the flat element `base`
    std::int64_t base = 0;
  };

  void look_up_labels(const BatchRun& run);
  void count_labels(const BatchRun& run);
  void perform(const ExecutionPlan::Action& action, Task& task);
  void fetch(Task& task);
  void loss(Task& task);
  void forward(int operation, Task& task, bool local);
  void recompute(int operation, Task& task);
  void backward_local(int operation, Task& task);
  void backward(int operation, Task& task);
  void zero_gradients(int operation, Task& task);
  void add_shared_gradients(int owner, const Pass& pass, const MicroshardSlot& slot);
  void measure_gradients(int operation, const Pass& pass);
  void add_contributions(int operation, const Task& task);
  void finish_gradients(const Task& task);
  void make_discarded();
  GradientPlace gradients_of(int operation, const Task& task) const;
  Pass pass_before_loss(int operation, const Task& task) const {
    return pass_of(task.slot.call(operation, false), task, {});
  }
  Pass pass_after_loss(int operation, const Task& task, GradientPlace gradients) const {
    return pass_of(task.slot.call(operation, true), task, gradients);
  }
  Pass pass_of(const MicroshardSlot::Call& call, const Task& task, GradientPlace gradients) const;
  const Graph::Operation& operation_of(int number) const {
    return parts_.calls.operations[static_cast<std::size_t>(number)];
  }
  const Range& own_gradients(int operation) const {
    return parts_.gradients[static_cast<std::size_t>(operation)].range;
  }
  SyncPoint& sync_point(int operation) const {
    return *parts_.sync_points[static_cast<std::size_t>(operation)];
  }
  MicroshardSlot& slot_of(int worker, int shard) {
    return slots_[static_cast<std::size_t>(parts_.plan.slot(worker, shard))];
  }

  Parts parts_;
  std::vector<MicroshardSlot> slots_;
  std::vector<Buffer> discarded_;          ///< by worker: Pass::discarded
  std::vector<std::vector<int>> sharers_;  ///< by operation: those that use its variables in backward
  const GradientAccumulator* accumulator_ = nullptr;
  SparseGradients* sparse_ = nullptr;
  NoiseScale* noise_ = nullptr;
  StepObserver* observer_ = nullptr;
};

}  // namespace lockstep
