// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Optimizer updates on the CPU, per instruction-set level (isa.h). Each element's operations are rounded one
// by one, in the order written, in vectors as in the rest, so a range may be cut anywhere.
#include "kernels/update.h"

#include "kernels/isa.h"

namespace lockstep::LOCKSTEP_ISA {
namespace {

class Update final : public UpdateKernels {
 public:
  void unscale(const Lane&, std::int64_t count, float factor, float* g,
               std::int32_t* not_finite) const override {
    std::uint32_t largest = 0;  // a magnitude's bits ascend with it, up to infinity, and NaN is beyond
    for (std::int64_t i = 0; i < count; ++i) {
      g[i] *= factor;
      const std::uint32_t magnitude = __builtin_bit_cast(std::uint32_t, g[i]) & 0x7FFFFFFFU;
      largest = magnitude > largest ? magnitude : largest;
    }
    if (largest >= 0x7F800000U) *not_finite = 1;
  }

  void gradient_descent(const Lane&, std::int64_t count, float* w, const float* g, float lr) const override {
    for (std::int64_t i = 0; i < count; ++i) w[i] -= lr * g[i];
  }

  void momentum(const Lane&, std::int64_t count, float* __restrict__ w, const float* __restrict__ g,
                float* __restrict__ a, float lr, float mu, bool nesterov) const override {
    if (nesterov) {
      const float lr_mu = lr * mu;
      for (std::int64_t i = 0; i < count; ++i) {
        const float velocity = mu * a[i] + g[i];
        a[i] = velocity;
        w[i] -= lr * g[i] + lr_mu * velocity;
      }
    } else {
      for (std::int64_t i = 0; i < count; ++i) {
        const float velocity = mu * a[i] + g[i];
        a[i] = velocity;
        w[i] -= lr * velocity;
      }
    }
  }

  void adam(const Lane&, std::int64_t count, float* __restrict__ w, const float* __restrict__ g,
            float* __restrict__ m, float* __restrict__ v, float alpha, float beta1, float beta2,
            float epsilon) const override {
    const float gain1 = 1.0F - beta1, gain2 = 1.0F - beta2;
    for (std::int64_t i = 0; i < count; ++i) {
      const float first = m[i] + gain1 * (g[i] - m[i]);
      const float second = v[i] + gain2 * (g[i] * g[i] - v[i]);
      m[i] = first;
      v[i] = second;
      w[i] -= alpha * first / (__builtin_sqrtf(second) + epsilon);
    }
  }
};

}  // namespace

const UpdateKernels& update_kernels() {
  static const Update kernels;
  return kernels;
}

}  // namespace lockstep::LOCKSTEP_ISA
