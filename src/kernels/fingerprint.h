// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What copies of the same numbers are compared by, in one pass where they lie. Plain types only.
#pragma once

#include <cstdint>

#include "kernels/lane.h"

namespace lockstep {

struct Fingerprint {
  std::uint64_t hash;     ///< of bits and places. CPU and GPU hash in ways of their own.
  std::uint32_t broken;   ///< 1 if a number is NaN or infinite, else 0
  std::uint32_t padding;  ///< 0
};

class FingerprintKernels {
 public:
  virtual ~FingerprintKernels();

  /// *to = the fingerprint of `count` numbers; `to` is memory that the host reads: pinned, if there is a
  /// device. Equal bits give equal fingerprints at any address, and on the CPU at every instruction set.
  virtual void fingerprint(const Lane&, std::int64_t count, const float* values, Fingerprint* to) const = 0;
};

}  // namespace lockstep
