// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// When the calls of a step happen, for the memory plan. With K operations, time i is the forward call of
// operation i and time K is the loss. The backward calls follow, from operation K-1 to operation 0, at times
// 2K - i if nothing is recomputed; operations without a backward call have a time, too. Operations that are
// recomputed are called once more before the backward call that needs them (recomputation.h).
#pragma once

#include <vector>

#include "model/graph.h"

namespace lockstep {

class CallTimes {
 public:
  explicit CallTimes(const Graph::Calls& calls);

  int loss() const { return static_cast<int>(backward_.size()); }
  int backward(int operation) const { return backward_[static_cast<std::size_t>(operation)]; }
  /// Of an operation that is recomputed.
  int recomputed(int operation) const { return recomputed_[static_cast<std::size_t>(operation)]; }
  /// After all calls.
  int end() const { return end_; }

 private:
  std::vector<int> backward_, recomputed_;
  int end_;
};

}  // namespace lockstep
