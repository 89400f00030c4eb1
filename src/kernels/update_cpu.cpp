// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Optimizer updates on the CPU, per instruction-set level (isa.h). Each element's operations are rounded one
// by one, in the order written, in vectors and in the remainder alike, so a range may be split anywhere.
#include "kernels/update.h"

#include "kernels/isa.h"

namespace lockstep::LOCKSTEP_ISA {
namespace {

inline void descend(std::int64_t count, float* w, const float* g, float lr) {
  for (std::int64_t i = 0; i < count; ++i) w[i] -= lr * g[i];
}

inline void move_with_momentum(std::int64_t count, float* __restrict__ w, const float* __restrict__ g,
                               float* __restrict__ a, float lr, float mu, bool nesterov) {
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

inline void move_by_adam(std::int64_t count, float* __restrict__ w, const float* __restrict__ g,
                         float* __restrict__ m, float* __restrict__ v, float alpha, float beta1, float beta2,
                         float epsilon) {
  const float gain1 = 1.0F - beta1, gain2 = 1.0F - beta2;
  for (std::int64_t i = 0; i < count; ++i) {
    const float first = m[i] + gain1 * (g[i] - m[i]);
    const float second = v[i] + gain2 * (g[i] * g[i] - v[i]);
    m[i] = first;
    v[i] = second;
    w[i] -= alpha * first / (__builtin_sqrtf(second) + epsilon);
  }
}

constexpr std::int64_t kZeros = 4096;
constexpr float zeros[kZeros] = {};

/// Calls move(first number, count, gradients) for the parts of a table that are updated.
template <typename Move>
inline void for_each_stretch(const RowUpdate& update, const Move& move) {
  const auto others = [&](std::int64_t first_row, std::int64_t last_row) {
    if (!update.others) return;
    const std::int64_t end = last_row * update.width;
    for (std::int64_t at = first_row * update.width; at < end; at += kZeros)
      move(at, at + kZeros < end ? kZeros : end - at, zeros);
  };
  std::int64_t next = update.first, k = 0;
  while (k < update.count && update.rows[k] < update.first) ++k;
  for (; k < update.count && update.rows[k] < update.last; ++k) {
    others(next, update.rows[k]);
    move(update.rows[k] * update.width, update.width, update.values + k * update.width);
    next = update.rows[k] + 1;
  }
  others(next, update.last);
}

class Update final : public UpdateKernels {
 public:
  void unscale(const Lane&, std::int64_t count, float factor, float* g,
               std::int32_t* not_finite) const override {
    std::uint32_t largest = 0;  // the bits of a magnitude increase with it, up to infinity; NaN is above
    for (std::int64_t i = 0; i < count; ++i) {
      g[i] *= factor;
      const std::uint32_t magnitude = __builtin_bit_cast(std::uint32_t, g[i]) & 0x7FFFFFFFU;
      largest = magnitude > largest ? magnitude : largest;
    }
    if (largest >= 0x7F800000U) *not_finite = 1;
  }

  void gradient_descent(const Lane&, std::int64_t count, float* w, const float* g, float lr) const override {
    descend(count, w, g, lr);
  }

  void momentum(const Lane&, std::int64_t count, float* w, const float* g, float* a, float lr, float mu,
                bool nesterov) const override {
    move_with_momentum(count, w, g, a, lr, mu, nesterov);
  }

  void adam(const Lane&, std::int64_t count, float* w, const float* g, float* m, float* v, float alpha,
            float beta1, float beta2, float epsilon) const override {
    move_by_adam(count, w, g, m, v, alpha, beta1, beta2, epsilon);
  }

  void gradient_descent_rows(const Lane&, const RowUpdate& update, float* w, float lr) const override {
    for_each_stretch(
        update, [&](std::int64_t at, std::int64_t count, const float* g) { descend(count, w + at, g, lr); });
  }

  void momentum_rows(const Lane&, const RowUpdate& update, float* w, float* a, float lr, float mu,
                     bool nesterov) const override {
    for_each_stretch(update, [&](std::int64_t at, std::int64_t count, const float* g) {
      move_with_momentum(count, w + at, g, a + at, lr, mu, nesterov);
    });
  }

  void adam_rows(const Lane&, const RowUpdate& update, float* w, float* m, float* v, float alpha, float beta1,
                 float beta2, float epsilon) const override {
    for_each_stretch(update, [&](std::int64_t at, std::int64_t count, const float* g) {
      move_by_adam(count, w + at, g, m + at, v + at, alpha, beta1, beta2, epsilon);
    });
  }
};

}  // namespace

const UpdateKernels& update_kernels() {
  static const Update kernels;
  return kernels;
}

}  // namespace lockstep::LOCKSTEP_ISA
