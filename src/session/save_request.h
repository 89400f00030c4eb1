// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A request of any rank for a checkpoint, which all ranks learn with the exchange of a step. The checkpoint
// saver takes it after that step.
#pragma once

#include <utility>

#include "session/rank_values.h"

namespace lockstep {

class SaveRequest {
 public:
  explicit SaveRequest(RankValues& values) : values_(values), slice_(values.declare(1)) {}

  /// Any rank, on the loop's thread.
  void request() { requested_ = true; }
  /// A request is agreed, and no saver has taken it yet. The same on all ranks.
  bool pending() const { return pending_; }
  /// Returns pending(), and clears it.
  bool take() { return std::exchange(pending_, false); }

  /// The loop, before and after the exchange.
  void send() { values_.mine(slice_)[0] = std::exchange(requested_, false) ? 1 : 0; }
  void receive() { pending_ = pending_ || values_.largest(slice_) > 0; }

 private:
  RankValues& values_;
  RankValues::Slice slice_;
  bool requested_ = false, pending_ = false;
};

}  // namespace lockstep
