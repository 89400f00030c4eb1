// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Where a run stands in its samples, and the samples of one step (step_plan.h).
#pragma once

#include <cstdint>

namespace lockstep {

/// The position of a run: the samples of `epoch` before position `samples_consumed` have been used. Stored in
/// checkpoints.
struct Cursor {
  std::int64_t epoch = 0;
  std::int64_t samples_consumed = 0;
  friend bool operator==(const Cursor&, const Cursor&) = default;
};

/// Positions [first, first + count) of `epoch`.
struct Batch {
  std::int64_t epoch, first, count;
  friend bool operator==(const Batch&, const Batch&) = default;
};

}  // namespace lockstep
