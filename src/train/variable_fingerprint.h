// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A fingerprint of all variables, taken where they lie: what ranks compare to see that they have the same
// bits, and whether training has broken them.
#pragma once

#include <cstdint>
#include <vector>

#include "train/executor.h"

namespace lockstep {

class VariableFingerprint {
 public:
  explicit VariableFingerprint(const ExecutorContext& context);

  struct Result {
    std::uint64_t hash = 0;  ///< the same on ranks whose variables have the same bits, whatever their threads
    bool finite = true;      ///< none is NaN or infinite
  };
  /// On the loop's thread; waits for the device.
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
