// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Products, sums and maxima along a middle axis on the CPU, per instruction-set level (isa.h).
#include "kernels/broadcast.h"

#include "kernels/isa.h"
#include "kernels/vec_sums.h"

namespace lockstep::LOCKSTEP_ISA {
namespace {

/// Larger than what was the largest so far; the first NaN is larger than all, and stays.
inline bool exceeds(float value, float best) { return value > best || (value != value && best == best); }

void row_maximum(std::int64_t count, const float* x, float* y, std::int32_t* at) {
  float best = x[0];
  std::int32_t index = 0;
  for (std::int64_t m = 1; m < count; ++m)
    if (exceeds(x[m], best)) {
      best = x[m];
      index = static_cast<std::int32_t>(m);
    }
  *y = best;
  if (at != nullptr) *at = index;
}

class Broadcast final : public BroadcastKernels {
 public:
  void multiply(const Lane&, const BroadcastShape& s, const float* a, const float* b,
                float* y) const override {
    if (s.middle == 1) {
      for (std::int64_t i = 0; i < s.outer * s.inner; ++i) y[i] = a[i] * b[i];
      return;
    }
    for (std::int64_t o = 0; o < s.outer; ++o) {
      if (s.inner == 1) {
        const std::int64_t row = o * s.middle;
        for (std::int64_t m = 0; m < s.middle; ++m) y[row + m] = a[row + m] * b[o];
        continue;
      }
      const float* small = b + o * s.inner;
      for (std::int64_t m = 0; m < s.middle; ++m) {
        const std::int64_t row = (o * s.middle + m) * s.inner;
        for (std::int64_t i = 0; i < s.inner; ++i) y[row + i] = a[row + i] * small[i];
      }
    }
  }

  void repeat(const Lane&, const BroadcastShape& s, float factor, const float* b, float* y) const override {
    for (std::int64_t o = 0; o < s.outer; ++o) {
      if (s.inner == 1) {
        for (std::int64_t m = 0; m < s.middle; ++m) y[o * s.middle + m] = factor * b[o];
        continue;
      }
      const float* small = b + o * s.inner;
      for (std::int64_t m = 0; m < s.middle; ++m) {
        float* to = y + (o * s.middle + m) * s.inner;
        for (std::int64_t i = 0; i < s.inner; ++i) to[i] = factor * small[i];
      }
    }
  }

  void sum(const Lane&, const BroadcastShape& s, double factor, const float* a, const float* b,
           float* y) const override {
    for (std::int64_t o = 0; o < s.outer; ++o) {
      const float* left = a + o * s.middle * s.inner;
      float* to = y + o * s.inner;
      if (b == nullptr) {
        sum_rows(s.middle, s.inner, factor, to,
                 [=]<typename V>(std::int64_t at, V) { return Lanes<V>::load(left + at); });
        continue;
      }
      const float* right = b + o * s.middle * s.inner;
      sum_rows(s.middle, s.inner, factor, to, [=]<typename V>(std::int64_t at, V) {
        return Lanes<V>::load(left + at) * Lanes<V>::load(right + at);
      });
    }
  }

  void maximum(const Lane&, const BroadcastShape& s, const float* a, float* y,
               std::int32_t* at) const override {
    for (std::int64_t o = 0; o < s.outer; ++o) {
      const float* from = a + o * s.middle * s.inner;
      float* best = y + o * s.inner;
      std::int32_t* index = at == nullptr ? nullptr : at + o * s.inner;
      if (s.inner == 1) {
        row_maximum(s.middle, from, best, index);
        continue;
      }
      for (std::int64_t i = 0; i < s.inner; ++i) {
        best[i] = from[i];
        if (index != nullptr) index[i] = 0;
      }
      for (std::int64_t m = 1; m < s.middle; ++m) {
        const float* row = from + m * s.inner;
        for (std::int64_t i = 0; i < s.inner; ++i) {
          const bool better = exceeds(row[i], best[i]);
          best[i] = better ? row[i] : best[i];
          if (index != nullptr) index[i] = better ? static_cast<std::int32_t>(m) : index[i];
        }
      }
    }
  }

  void maximum_backward(const Lane&, const BroadcastShape& s, const float* dy, const std::int32_t* at,
                        float* dx) const override {
    for (std::int64_t o = 0; o < s.outer; ++o) {
      const float* from = dy + o * s.inner;
      const std::int32_t* index = at + o * s.inner;
      for (std::int64_t m = 0; m < s.middle; ++m) {
        float* to = dx + (o * s.middle + m) * s.inner;
        for (std::int64_t i = 0; i < s.inner; ++i) to[i] = index[i] == m ? from[i] : 0.0F;
      }
    }
  }
};

}  // namespace

const BroadcastKernels& broadcast_kernels() {
  static const Broadcast kernels;
  return kernels;
}

}  // namespace lockstep::LOCKSTEP_ISA
