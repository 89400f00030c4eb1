// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/fingerprint.h"

#include "core/hash.h"
#include "kernels/factory_cpu.h"

namespace lockstep {
namespace {

class CpuFingerprint final : public FingerprintKernels {
 public:
  void fingerprint(const Lane&, std::int64_t count, const float* values, Fingerprint* to) const override {
    constexpr std::uint32_t kExponent = 0x7F800000U;
    std::uint32_t broken = 0;
    for (std::int64_t i = 0; i < count; ++i)
      broken |= (__builtin_bit_cast(std::uint32_t, values[i]) & kExponent) == kExponent ? 1U : 0U;
    *to = {hash64(values, static_cast<std::size_t>(count) * sizeof(float)), broken, 0};
  }
};

}  // namespace

const FingerprintKernels& cpu_fingerprint_kernels() {
  static const CpuFingerprint kernels;
  return kernels;
}

}  // namespace lockstep
