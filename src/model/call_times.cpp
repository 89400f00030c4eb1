// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "model/call_times.h"

#include "model/recomputation.h"

namespace lockstep {

CallTimes::CallTimes(const Graph::Calls& calls)
    : backward_(calls.operations.size()), recomputed_(calls.operations.size(), -1), end_(loss() + 1) {
  const std::vector<std::vector<int>> before = recomputations(calls);
  for (std::size_t i = backward_.size(); i-- > 0;) {
    for (const int operation : before[i]) recomputed_[static_cast<std::size_t>(operation)] = end_++;
    backward_[i] = end_++;
  }
}

}  // namespace lockstep
