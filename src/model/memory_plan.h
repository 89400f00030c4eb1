// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The offset of every activation, gradient and saved state of one microshard in one arena. It is computed
// once per mode from the layers' traits, and is pure arithmetic.
//
// Lifetimes are counted in calls (call_times.h). What is recomputed (recomputation.h) has two lifetimes, and
// a place for each: from its forward call to the last one that reads it before the backward pass of its
// segment, and from its second call to the last one of the segment that reads it.
#pragma once

#include <cstdint>
#include <vector>

#include "core/arena.h"
#include "model/graph.h"

namespace lockstep {

class CallTimes;

class MemoryPlan {
 public:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  /// Plans microshards of up to `max_samples` samples. `calls` come from Graph::prepare().
  MemoryPlan(const Graph::Calls& calls, bool training, std::int64_t max_samples);

  /// The size of the arena of one microshard.
  std::size_t total_bytes() const { return arena_.total_bytes(); }
  /// Byte offsets in the arena; kNone for a value or a state that has no memory.
  std::size_t value(int value) const { return values_[static_cast<std::size_t>(value)]; }
  std::size_t saved(int operation) const { return saved_[static_cast<std::size_t>(operation)]; }
  /// The same after the second call of an operation that is recomputed, whose segment reads a value there
  /// (Graph::Calls::reads_recomputed); kNone of others.
  std::size_t recomputed_value(int value) const {
    return recomputed_values_[static_cast<std::size_t>(value)];
  }
  std::size_t recomputed_saved(int operation) const {
    return recomputed_saved_[static_cast<std::size_t>(operation)];
  }
  /// Where an operation that shares the variables of another one (its owner) writes their gradients. They are
  /// kept until the owner's backward call, after which they are added to the owner's.
  std::size_t shared_gradients(int operation) const {
    return shared_gradients_[static_cast<std::size_t>(operation)];
  }

  /// One of the terms whose sum is the gradient of a value.
  struct Contribution {
    std::size_t offset = kNone;  ///< where it is written; kNone: it is not wanted
    bool accumulate = false;     ///< afterwards it is added to the gradient at value_gradient()
  };
  /// What the backward call of an operation contributes to the gradient of its input `index`.
  const Contribution& contribution(int operation, int index) const {
    return contributions_[static_cast<std::size_t>(operation)][static_cast<std::size_t>(index)];
  }
  /// What the loss of head `index` contributes to the gradient of value calls.outputs[index].
  const Contribution& loss_gradient(int index) const {
    return loss_gradients_[static_cast<std::size_t>(index)];
  }
  /// The gradient of a value, and a second contribution that its producer adds (Pass::dy2). The terms of a
  /// sum may share the gradient of the sum, whose backward call then leaves them as they are.
  std::size_t value_gradient(int value) const { return gradients_[static_cast<std::size_t>(value)]; }
  std::size_t second_gradient(int value) const { return second_gradients_[static_cast<std::size_t>(value)]; }

 private:
  void plan_values(const Graph::Calls& calls, const CallTimes& times, bool training,
                   std::int64_t max_samples);
  void plan_gradients(const Graph::Calls& calls, const CallTimes& times, std::int64_t max_samples);

  std::size_t gradient_of_sum(const Graph::Calls& calls, int operation) const;
  void plan_loss_gradients(const Graph::Calls& calls, int value, std::size_t bytes);

  ArenaPlan arena_;
  std::vector<std::size_t> values_, recomputed_values_, saved_, recomputed_saved_, shared_gradients_,
      gradients_, second_gradients_;
  std::vector<std::vector<Contribution>> contributions_;
  std::vector<Contribution> loss_gradients_;
};

}  // namespace lockstep
