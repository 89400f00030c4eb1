// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Fingerprints to compare copies of the same numbers, computed in one pass on the device that holds them.
// This header uses plain types only (isa.h).
#pragma once

#include <cstdint>

#include "kernels/lane.h"

namespace lockstep {

struct Fingerprint {
  std::uint64_t hash;     ///< of bits and positions; CPU and GPU use different hash functions
  std::uint32_t broken;   ///< 1 if any number is NaN or infinite, else 0
  std::uint32_t padding;  ///< always 0
};

class FingerprintKernels {
 public:
  virtual ~FingerprintKernels();

  /// *to = the fingerprint of `count` numbers. `to` is memory that the host reads: pinned memory for a GPU.
  /// Equal bits have equal fingerprints at any address, and on the CPU at every instruction-set level.
  virtual void fingerprint(const Lane&, std::int64_t count, const float* values, Fingerprint* to) const = 0;
};

}  // namespace lockstep
