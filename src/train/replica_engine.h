// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The engine of replicas: every rank computes its microshards of each step, and the reducer sums gradients
// while the backward pass goes on. With a gating other than graph, variables are updated meanwhile, as soon
// as their sums are there and no call reads their values any more.
#pragma once

#include "data/step_plan.h"
#include "train/dataset_batch_source.h"
#include "train/executor.h"
#include "train/fed_batch_source.h"
#include "train/guarded_batch_source.h"
#include "train/step_engine.h"
#include "train/step_observers.h"

namespace lockstep {

class StepNumbers;
class StepSums;
class StepUpdate;

class ReplicaEngine final : public StepEngine {
 public:
  /// What a trainer owns; all of it outlives the engine.
  struct Parts {
    const ExecutorContext& context;
    Communicator& control;
    const StepPlan& plan;
    Executor& executor;
    DatasetBatchSource& source;
    const StepNumbers& numbers;
    StepSums& sums;
    StepUpdate& update;
  };
  explicit ReplicaEngine(const Parts& parts);

  void compute(const StepPosition& position, Gating gating) override;
  bool could_not_read(const Batch& batch) const override { return source().failed(batch); }
  void check_reading(const Batch& batch) override { source().check(batch, parts_.control); }
  void fill_leaves(const Batch& batch) override;
  bool repeats() const override;
  void repeat(const StepPosition& position, StepObserver& observer) override;
  void set_gating(Gating gating) override;
  void set_feed(Feed feed) override { fed_.set_feed(std::move(feed)); }
  void add_observer(StepObserver& observer) override;
  void remove_observer(StepObserver& observer) override;
  std::int64_t bytes_sent_per_step() const override;

 private:
  void run_passes(const StepPosition& position);
  void finish_sums();
  void update_released(std::int64_t released);

  GuardedBatchSource& source() { return fed_.feeds() ? guarded_fed_ : guarded_; }
  const GuardedBatchSource& source() const { return fed_.feeds() ? guarded_fed_ : guarded_; }

  Parts parts_;
  FedBatchSource fed_;
  GuardedBatchSource guarded_, guarded_fed_;  ///< what the executor reads
  StepObservers observers_;
  Gating gating_;          ///< of the passes in progress
  std::int64_t step_ = 0;  ///< that is computed
};

}  // namespace lockstep
