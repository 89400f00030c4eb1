// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/replica_engine.h"

#include <algorithm>
#include <utility>

#include "core/trace.h"
#include "optim/gating.h"
#include "train/step_numbers.h"
#include "train/step_sums.h"
#include "train/step_update.h"

namespace lockstep {

ReplicaEngine::ReplicaEngine(const Parts& parts)
    : parts_(parts),
      fed_(parts.source),
      guarded_(parts.source, parts.context.graph.features().num_elements()),
      guarded_fed_(fed_, parts.context.graph.features().num_elements()),
      gating_(Gating::graph) {}

void ReplicaEngine::set_gating(Gating gating) {
  Executor::Released released;
  if (gating != Gating::graph && parts_.context.device.is_host())
    released = [this](std::int64_t end) { update_released(end); };
  parts_.executor.attach(parts_.sums.reducer(), parts_.sums.sparse(), std::move(released));
}

void ReplicaEngine::add_observer(StepObserver& observer) {
  observers_.add(observer);
  parts_.executor.observe(observers_.any());
}

void ReplicaEngine::remove_observer(StepObserver& observer) {
  observers_.remove(observer);
  parts_.executor.observe(observers_.any());
}

void ReplicaEngine::compute(const StepPosition& position, Gating gating) {
  {
    const Traced traced("forward", "packing weights");
    parts_.executor.refresh_weights();
  }
  gating_ = gating;
  step_ = position.step;
  run_passes(position);
  finish_sums();
}

void ReplicaEngine::run_passes(const StepPosition& position) {
  // A device gets the next batch while it computes this one. A feed changes samples in the step itself.
  const Batch batch = parts_.plan.batch(position.cursor);
  const Batch next = parts_.plan.batch(parts_.plan.advance(position.cursor));
  fed_.set_step(position.step);
  GradientReducer& reducer = parts_.sums.reducer();
  if (fed_.feeds())
    parts_.executor.train({.source = guarded_fed_, .batch = batch, .step = position.step}, reducer);
  else
    parts_.executor.train({.source = guarded_, .batch = batch, .step = position.step, .next = &next},
                          reducer);
}

/// Waits until all gradients are summed, and updates variables meanwhile.
void ReplicaEngine::finish_sums() {
  GradientReducer& reducer = parts_.sums.reducer();
  if (gating_ != Gating::graph)
    for (int done = 1; done <= static_cast<int>(reducer.buckets().size()); ++done) {
      {
        const Traced traced("waiting", "for gradients");
        reducer.wait_for(done);
      }
      update_released(parts_.context.variables.dense_elements());
    }
  gating_ = Gating::graph;
  {
    const Traced traced("waiting", "for gradients");
    reducer.wait_all();
  }
  parts_.sums.reduce_sparse();
}

/// No call reads the values of dense variables before `released` any more in this step. Updates those whose
/// sums are there, too. They lie one after the other: buckets are complete in the order of the flat range.
void ReplicaEngine::update_released(std::int64_t released) {
  if (gating_ == Gating::graph) return;
  const GradientReducer& reducer = parts_.sums.reducer();
  const int done = reducer.num_done();
  std::int64_t end =
      done == 0 ? 0 : std::min(released, reducer.buckets()[static_cast<std::size_t>(done) - 1].last);
  if (gating_ == Gating::op) {
    std::int64_t layers = 0;
    for (const GradientRange& layer : parts_.executor.gradients())
      if (layer.range.last <= end) layers = std::max(layers, layer.range.last);
    end = layers;
  }
  parts_.update.update_to(end, step_);
}

void ReplicaEngine::fill_leaves(const Batch& batch) {
  const Range own = parts_.executor.own_shards();
  for (int shard = static_cast<int>(own.first); shard < own.last; ++shard)
    parts_.numbers.fill_leaf(shard, parts_.executor.head_sums(shard),
                             parts_.plan.shard_range(batch.count, shard).size(),
                             parts_.sums.exchange().leaf(shard));
}

bool ReplicaEngine::repeats() const { return parts_.update.updated() == 0; }

void ReplicaEngine::repeat(const StepPosition& position, StepObserver& observer) {
  StepObserver* const other = parts_.executor.observer();
  parts_.executor.observe(&observer);
  run_passes(position);
  finish_sums();
  parts_.executor.observe(other);
  check_reading(parts_.plan.batch(position.cursor));
}

std::int64_t ReplicaEngine::bytes_sent_per_step() const {
  return parts_.sums.bytes_sent_per_step() + parts_.update.bytes_sent_per_step();
}

}  // namespace lockstep
