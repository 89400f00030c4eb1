// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Optimizer updates on a GPU: one pass over memory each, the CPU's operations in the CPU's order, hence its
// bits.
#include "kernels/update.h"

#include <cmath>

#include "kernels/cuda_vector.h"
#include "kernels/factory_cuda.h"

namespace lockstep::cuda {
namespace {

struct Unscale {
  float factor;
  float* g;
  std::int32_t* not_finite;
  template <typename V>
  __device__ void run(std::int64_t i) const {
    auto value = V::load(g + i);
    bool finite = true;
    for (int k = 0; k < V::kWidth; ++k) {
      value.at[k] *= factor;
      finite = finite && std::isfinite(value.at[k]);
    }
    V::store(g + i, value);
    if (!finite) *not_finite = 1;  // whoever writes, writes the same
  }
};

struct GradientDescent {
  float* w;
  const float* g;
  float lr;
  template <typename V>
  __device__ void run(std::int64_t i) const {
    const auto gradient = V::load(g + i);
    auto weight = V::load(w + i);
    for (int k = 0; k < V::kWidth; ++k) weight.at[k] -= lr * gradient.at[k];
    V::store(w + i, weight);
  }
};

template <bool kNesterov>
struct Momentum {
  float* w;
  const float* g;
  float* a;
  float lr, mu, lr_mu;
  template <typename V>
  __device__ void run(std::int64_t i) const {
    const auto gradient = V::load(g + i);
    auto weight = V::load(w + i), velocity = V::load(a + i);
    for (int k = 0; k < V::kWidth; ++k) {
      velocity.at[k] = mu * velocity.at[k] + gradient.at[k];
      weight.at[k] -= kNesterov ? lr * gradient.at[k] + lr_mu * velocity.at[k] : lr * velocity.at[k];
    }
    V::store(a + i, velocity);
    V::store(w + i, weight);
  }
};

struct Adam {
  float* w;
  const float* g;
  float* m;
  float* v;
  float alpha, gain1, gain2, epsilon;
  template <typename V>
  __device__ void run(std::int64_t i) const {
    const auto gradient = V::load(g + i);
    auto weight = V::load(w + i), first = V::load(m + i), second = V::load(v + i);
    for (int k = 0; k < V::kWidth; ++k) {
      first.at[k] += gain1 * (gradient.at[k] - first.at[k]);
      second.at[k] += gain2 * (gradient.at[k] * gradient.at[k] - second.at[k]);
      weight.at[k] -= alpha * first.at[k] / (sqrtf(second.at[k]) + epsilon);
    }
    V::store(m + i, first);
    V::store(v + i, second);
    V::store(w + i, weight);
  }
};

class Update final : public UpdateKernels {
 public:
  void unscale(const Lane& lane, std::int64_t count, float factor, float* g,
               std::int32_t* not_finite) const override {
    for_each_element(lane, "unscale", count, wide_aligned(g), Unscale{factor, g, not_finite});
  }

  void gradient_descent(const Lane& lane, std::int64_t count, float* w, const float* g,
                        float lr) const override {
    for_each_element(lane, "gradient_descent", count, wide_aligned(w, g), GradientDescent{w, g, lr});
  }

  void momentum(const Lane& lane, std::int64_t count, float* w, const float* g, float* a, float lr, float mu,
                bool nesterov) const override {
    if (nesterov)
      for_each_element(lane, "momentum", count, wide_aligned(w, g, a),
                       Momentum<true>{w, g, a, lr, mu, lr * mu});
    else
      for_each_element(lane, "momentum", count, wide_aligned(w, g, a),
                       Momentum<false>{w, g, a, lr, mu, lr * mu});
  }

  void adam(const Lane& lane, std::int64_t count, float* w, const float* g, float* m, float* v, float alpha,
            float beta1, float beta2, float epsilon) const override {
    for_each_element(lane, "adam", count, wide_aligned(w, g, m, v),
                     Adam{w, g, m, v, alpha, 1.0F - beta1, 1.0F - beta2, epsilon});
  }
};

}  // namespace

const UpdateKernels& update_kernels() {
  static const Update kernels;
  return kernels;
}

}  // namespace lockstep::cuda
