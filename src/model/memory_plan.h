// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Where every activation, gradient and saved state of one microshard lies, in one arena: computed once per
// mode from what the layers say they read. Pure arithmetic.
//
// Time i is operation i's forward call, time K (their number) the loss, time 2K - i operation i's backward
// call.
#pragma once

#include <cstdint>
#include <vector>

#include "core/arena.h"
#include "model/graph.h"

namespace lockstep {

class MemoryPlan {
 public:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  /// For microshards of up to `max_samples`, of calls that were prepared (Graph::prepare()).
  MemoryPlan(const Graph::Calls& calls, bool training, std::int64_t max_samples);

  /// Size of the arena of one microshard in flight.
  std::size_t total_bytes() const { return arena_.total_bytes(); }
  /// Byte offsets; kNone where there is none.
  std::size_t value(int value) const { return values_[static_cast<std::size_t>(value)]; }
  std::size_t saved(int operation) const { return saved_[static_cast<std::size_t>(operation)]; }
  /// Where an operation that uses another one's variables puts its gradients of them, until the owner's
  /// backward call, behind which they are added.
  std::size_t shared_gradients(int operation) const {
    return shared_gradients_[static_cast<std::size_t>(operation)];
  }

  /// How an operation's backward call gives a contribution to the gradient of input `index`.
  struct Contribution {
    std::size_t offset = kNone;  ///< where to write; kNone: nobody wants it
    bool accumulate = false;     ///< then add it to the gradient at value_gradient()
  };
  const Contribution& contribution(int operation, int index) const {
    return contributions_[static_cast<std::size_t>(operation)][static_cast<std::size_t>(index)];
  }
  /// The same for the loss of head `index`, whose gradient is that of value calls.outputs[index].
  const Contribution& loss_gradient(int index) const {
    return loss_gradients_[static_cast<std::size_t>(index)];
  }
  /// The gradient of a value, and a second contribution that its producer adds itself.
  std::size_t value_gradient(int value) const { return gradients_[static_cast<std::size_t>(value)]; }
  std::size_t second_gradient(int value) const { return second_gradients_[static_cast<std::size_t>(value)]; }

 private:
  void plan_values(const Graph::Calls& calls, bool training, std::int64_t max_samples);
  void plan_gradients(const Graph::Calls& calls, std::int64_t max_samples);

  void plan_loss_gradients(const Graph::Calls& calls, int value, std::size_t bytes);

  ArenaPlan arena_;
  std::vector<std::size_t> values_, saved_, shared_gradients_, gradients_, second_gradients_;
  std::vector<std::vector<Contribution>> contributions_;
  std::vector<Contribution> loss_gradients_;
};

}  // namespace lockstep
