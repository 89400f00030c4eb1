// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A fingerprint of all variables, computed on their device. Ranks compare it to check that they have the same
// bits; it also tells whether all values are finite.
#pragma once

#include <cstdint>
#include <vector>

#include "core/buffer.h"
#include "train/executor_context.h"

namespace lockstep {

class VariableFingerprint {
 public:
  explicit VariableFingerprint(const ExecutorContext& context);

  struct Result {
    std::uint64_t hash = 0;  ///< equal on ranks whose variables have the same bits, for any number of threads
    bool finite = true;      ///< none is NaN or infinite
  };
  /// The result, on the main thread; waits for the device.
  Result take();

 private:
  struct Piece {
    const float* values;
    std::int64_t count;
  };
  ExecutorContext context_;
  std::vector<Piece> pieces_;
  Buffer parts_;  ///< a Fingerprint for each piece; pinned
};

}  // namespace lockstep
