// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The engine of a trainer: who computes the gradients and losses of a step, and how they meet. It leaves the
// sums in StepSums; everything before and after (schedules, clipping, numbers, the update) is the trainer's.
// There are two:
//
//   ReplicaEngine    every rank computes its microshards of each step, and a reducer sums them
//   ServerTraining   workers compute parts of batches, and servers sum them (section `cluster`)
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "data/cursor.h"
#include "train/feed.h"

namespace lockstep {

class ServerTraining;
class StepObserver;
enum class Gating;

/// Where a run stands: the steps done, and the next batch.
struct StepPosition {
  std::int64_t step = 0;
  Cursor cursor;
};

class StepEngine {
 public:
  virtual ~StepEngine() = default;

  /// Runs whole steps, with their updates, up to the one that compute() computes, and moves the position to
  /// it. Returns the number of their samples. All ranks.
  virtual std::int64_t run_ahead(StepPosition& /*position*/) { return 0; }
  /// Computes the gradients of the step, and waits for their sums. With a gating other than graph, it updates
  /// variables meanwhile. All ranks.
  virtual void compute(const StepPosition& position, Gating gating) = 0;
  /// After compute(): this rank could not read its samples of the batch, and has computed zeros.
  virtual bool could_not_read(const Batch& /*batch*/) const { return false; }
  /// All ranks. If one could not, all throw its error.
  virtual void check_reading(const Batch& /*batch*/) {}
  /// After compute(): fills the leaves of the losses, which StepSums::exchange() sums.
  virtual void fill_leaves(const Batch& batch) = 0;
  /// The batch of an earlier step that it has run ahead, as StepResult::step; none: it knows no such step.
  virtual std::optional<Batch> batch_of(std::int64_t /*step*/) const { return std::nullopt; }
  /// The step may be computed again before it is applied.
  virtual bool repeats() const = 0;
  /// Computes the gradients of the step once more for an observer. All ranks. Only where repeats() is true.
  virtual void repeat(const StepPosition& position, StepObserver& observer) = 0;

  /// Before the first step, and again where it changes.
  virtual void set_gating(Gating gating) = 0;
  /// Changes the samples from the next step on; an empty function ends that.
  virtual void set_feed(Feed feed) = 0;
  /// An observer that is there already, or not there, changes nothing.
  virtual void add_observer(StepObserver& observer) = 0;
  virtual void remove_observer(StepObserver& observer) = 0;

  /// Bytes that this rank sent in the last step.
  virtual std::int64_t bytes_sent_per_step() const = 0;
  /// Time spent waiting for other ranks so far, in messages of the engine's own.
  virtual double seconds_waited() const { return 0; }
  /// Memory of the engine's own.
  virtual std::size_t memory_bytes() const { return 0; }
  /// The work of servers and workers; null: there are none.
  virtual const ServerTraining* servers() const { return nullptr; }
};

}  // namespace lockstep
