// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Runs the graph on this rank's microshards: forward for evaluation and prediction, forward and backward for
// training. The executor schedules the phases of an ExecutionPlan over the workers, stages the input of a
// device, synchronises ranks between phases, and records what a device repeats in every step. The parts:
//
//   ExecutionPlan      which actions run in which phase          pure
//   Branches           streams that run side by side on a device
//   MicroshardRunner   carries out the actions of a microshard   on a worker
//   SyncPoint          sums of a collective layer                all ranks
//   InputStage         samples on their way to a device
//   StepGraphs         recordings of a device's work
//
// One thread calls the executor. run() and train() allocate nothing.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "comm/gradient_reducer.h"
#include "core/function_ref.h"
#include "core/range.h"
#include "model/memory_plan.h"
#include "train/batch_source.h"
#include "train/branches.h"
#include "train/execution_plan.h"
#include "train/executor_context.h"
#include "train/gradient_accumulator.h"
#include "train/input_stage.h"
#include "train/loss_stage.h"
#include "train/microshard_runner.h"
#include "train/sparse_gradients.h"
#include "train/step_graphs.h"
#include "train/step_observer.h"

namespace lockstep {

class Executor {
 public:
  /// Prepares the layers for microshards of `sample_counts` samples, and plans memory. For training all ranks
  /// construct it, as synchronisation points have buffers of their own; there is no communication yet.
  /// `branches`: of a device in training; none: choose_branches() chooses. Evaluation has one.
  Executor(ExecutorContext context, bool training, std::span<const std::int64_t> sample_counts,
           std::optional<int> branches = {});
  ~Executor();

  /// Scratch that each of the first num_lanes() lanes needs; to be asked for when all executors are made.
  std::size_t scratch_bytes() const;
  /// Lanes that compute microshards at the same time: the threads of the CPU, the branches of a device.
  int num_lanes() const { return plan_.workers(); }
  /// Called on the calling thread in train(), between two phases and at the end, with ExecutionPlan's
  /// Phase::released.
  using Released = std::function<void(std::int64_t)>;
  /// Sets, for training, where gradients are summed. `sparse` (may be null) sums those of sparse tables. With
  /// `released`, the pass is cut where buckets are complete, also where their sums do not overlap with it;
  /// not on a device. A second call replaces the first.
  void attach(GradientReducer& reducer, SparseGradients* sparse = nullptr, Released released = {});

  /// Evaluation: forward and loss. No communication.
  void run(const BatchRun& run);
  /// Training: forward, loss divided by the batch's count, backward. Starts each bucket of the reducer when
  /// it is complete. All ranks. When it returns, losses are known; a device may still run the backward pass.
  void train(const BatchRun& run, GradientReducer& reducer);
  /// A forward pass in training up to the last batch norm, whose moving statistics keep the share `kept` of
  /// their values; no loss and no gradients. All ranks. Changes no other variable.
  void collect_statistics(const BatchRun& run, double kept);
  /// There are such statistics.
  bool has_statistics() const { return !plan_.forward_totals().empty(); }
  /// The microshards of this rank, and what the heads of one of them add up to in the last batch; zeros for
  /// an empty one.
  Range own_shards() const { return plan_.own(); }
  std::span<const HeadSums> head_sums(int shard) { return loss_.results(shard); }

  /// From the next train() on, gradients are those of the loss times `scale`.
  void set_loss_scale(double scale) { loss_.set_scale(scale); }
  /// Sets the observer from the next train() on; null: none. It outlives its use.
  void observe(StepObserver* observer);
  StepObserver* observer() const { return observer_; }
  /// Sets, before the first train(), what measures each microshard's gradients; it outlives the executor's
  /// use.
  void measure(NoiseScale* noise) { runner_.measure(noise); }
  std::span<const GradientRange> gradients() const { return gradients_; }
  /// The calls of a step, after fusion.
  const Graph::Calls& calls() const { return calls_; }
  /// Weights have changed: layers repack theirs.
  void refresh_weights();
  /// Activations of all microshards in flight.
  std::size_t activation_bytes() const { return runner_.memory_bytes(); }
  std::size_t accumulator_bytes() const { return accumulator_ ? accumulator_->memory_bytes() : 0; }
  /// What each branch after the first takes of a device's memory.
  std::size_t branch_bytes() const { return branch_bytes(plan_); }
  /// Microshards in flight at one time.
  int num_slots() const { return plan_.num_slots(); }

 private:
  int choose_workers(std::optional<int> branches) const;
  std::size_t branch_bytes(const ExecutionPlan& plan) const;
  ExecutionPlan::Spec plan_spec(int workers) const;
  std::vector<std::unique_ptr<SyncPoint>> make_sync_points() const;
  std::unique_ptr<InputStage> make_stage(std::int64_t max_samples) const;
  void run_phases(const BatchRun& run, std::span<const ExecutionPlan::Phase> phases,
                  GradientReducer* reducer);
  void begin(const BatchRun& run);
  std::size_t end_of_stretch(const BatchRun& run, std::span<const ExecutionPlan::Phase> phases,
                             std::size_t first) const;
  void run_microshards(const BatchRun& run, const ExecutionPlan::Phase& phase);
  void for_each_worker(FunctionRef<void(int)> work);
  void run_units(const BatchRun& run, std::span<const ExecutionPlan::Phase> phases);
  void combine_gradients(const ExecutionPlan::Phase& phase);
  void start_buckets(const ExecutionPlan::Phase& phase, GradientReducer* reducer);
  SyncPoint& sync_point(const ExecutionPlan::Phase& phase);
  void finish_exchange(const ExecutionPlan::Phase& phase);
  void losses_in_stream();
  bool may_record(const BatchRun& run, const ExecutionPlan::Phase& phase) const;
  void wait_for_losses();

  ExecutorContext context_;
  bool training_;
  Graph::Calls calls_;
  MemoryPlan memory_;
  std::vector<GradientRange> gradients_;  ///< by operation
  ExecutionPlan plan_;
  Branches branches_;
  std::vector<std::unique_ptr<SyncPoint>> sync_points_;  ///< by operation
  std::unique_ptr<InputStage> stage_;  ///< null on the CPU, where samples are fetched to where they are used
  LossStage loss_;
  MicroshardRunner runner_;
  std::unique_ptr<GradientAccumulator> accumulator_;
  DeviceEvent losses_known_;
  StepGraphs graphs_;
  SparseGradients* sparse_ = nullptr;
  Released released_;  ///< may be empty
  StepObserver* observer_ = nullptr;
  const bool layers_change_;  ///< a layer has a number that follows a schedule
};

}  // namespace lockstep
