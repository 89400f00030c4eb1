// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/node_arithmetic.h"

#include "comm/vector_add.h"
#include "core/vector_clones.h"

namespace lockstep {

namespace {

inline float rounded(float value) { return to_float(from_float<BFloat16>(value)); }

LOCKSTEP_VECTOR_CLONES void add_rounded_floats(float* __restrict into, const float* __restrict from,
                                               std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) into[i] = rounded(into[i]) + rounded(from[i]);
}

LOCKSTEP_VECTOR_CLONES void total_of_floats(float* __restrict into, const float* __restrict from,
                                            std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) into[i] = rounded(rounded(into[i]) + rounded(from[i]));
}

LOCKSTEP_VECTOR_CLONES void add_rounded_halves(float* __restrict into, const BFloat16* __restrict from,
                                               std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) into[i] = rounded(into[i]) + to_float(from[i]);
}

LOCKSTEP_VECTOR_CLONES void total_of_halves(float* __restrict into, const BFloat16* __restrict from,
                                            std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) into[i] = rounded(rounded(into[i]) + to_float(from[i]));
}

LOCKSTEP_VECTOR_CLONES void round_floats(float* values, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) values[i] = rounded(values[i]);
}

LOCKSTEP_VECTOR_CLONES void narrow_floats(const float* __restrict from, BFloat16* __restrict to,
                                          std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = from_float<BFloat16>(from[i]);
}

LOCKSTEP_VECTOR_CLONES void widen_halves(const BFloat16* __restrict from, float* __restrict to,
                                         std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = to_float(from[i]);
}

class HostArithmetic final : public NodeArithmetic {
 public:
  void add(void*, std::int64_t count, float* into, const float* from) const override {
    vector_add(into, from, count);
  }
  void add_rounded(void*, std::int64_t count, float* into, const float* from, bool total) const override {
    total ? total_of_floats(into, from, count) : add_rounded_floats(into, from, count);
  }
  void add_rounded(void*, std::int64_t count, float* into, const BFloat16* from, bool total) const override {
    total ? total_of_halves(into, from, count) : add_rounded_halves(into, from, count);
  }
  void round(void*, std::int64_t count, float* values) const override { round_floats(values, count); }
  void narrow(void*, std::int64_t count, const float* from, BFloat16* to) const override {
    narrow_floats(from, to, count);
  }
  void widen(void*, std::int64_t count, const BFloat16* from, float* to) const override {
    widen_halves(from, to, count);
  }
};

}  // namespace

const NodeArithmetic& host_arithmetic() {
  static const HostArithmetic arithmetic;
  return arithmetic;
}

}  // namespace lockstep
