// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Optimizer updates on a GPU: each is one pass over memory with the CPU's operations in the CPU's order, so
// it has the CPU's bits. For a sparse table gradient, the pass covers all rows, or only the rows with a
// gradient.
#include "kernels/update.h"

#include <cmath>

#include "kernels/cuda_columns.h"
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
    if (!finite) *not_finite = 1;  // all threads write the same value
  }
};

// The rules: apply<V>(element, gradient of the element).

struct GradientDescent {
  float* w;
  float lr;
  template <typename V>
  __device__ void apply(std::int64_t i, const Pack<V::kWidth>& gradient) const {
    auto weight = V::load(w + i);
    for (int k = 0; k < V::kWidth; ++k) weight.at[k] -= lr * gradient.at[k];
    V::store(w + i, weight);
  }
};

template <bool kNesterov>
struct Momentum {
  float* w;
  float* a;
  float lr, mu, lr_mu;
  template <typename V>
  __device__ void apply(std::int64_t i, const Pack<V::kWidth>& gradient) const {
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
  float* m;
  float* v;
  float alpha, gain1, gain2, epsilon;
  template <typename V>
  __device__ void apply(std::int64_t i, const Pack<V::kWidth>& gradient) const {
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

/// A flat range with a gradient for each element.
template <typename Rule>
struct Dense {
  Rule rule;
  const float* g;
  template <typename V>
  __device__ void run(std::int64_t i) const {
    rule.template apply<V>(i, V::load(g + i));
  }
};

/// Rows are the table's rows from update.first on; columns are its numbers. Each thread searches the list for
/// its row's gradient: the threads of a row take the same path, and the list is small compared with the
/// table.
template <typename Rule>
struct AllRows {
  Rule rule;
  RowUpdate update;
  template <typename V>
  __device__ std::int64_t column(std::int64_t number) const {
    return number;
  }
  template <typename V>
  __device__ void row(std::int64_t number, std::int64_t at, std::int64_t row) const {
    row += update.first;
    std::int64_t low = 0, high = update.count;  // the first listed row that is not before the row
    while (low < high) {
      const std::int64_t middle = (low + high) / 2;
      if (update.rows[middle] < row)
        low = middle + 1;
      else
        high = middle;
    }
    Pack<V::kWidth> gradient = {};
    if (low < update.count && update.rows[low] == row)
      gradient = V::load(update.values + low * update.width + number);
    rule.template apply<V>(update.first * update.width + at, gradient);
  }
};

/// Rows are those with a gradient; columns are their numbers.
template <typename Rule>
struct GivenRows {
  Rule rule;
  RowUpdate update;
  template <typename V>
  __device__ std::int64_t column(std::int64_t number) const {
    return number;
  }
  template <typename V>
  __device__ void row(std::int64_t number, std::int64_t at, std::int64_t k) const {
    const std::int64_t row = update.rows[k];
    if (row < update.first || row >= update.last) return;
    rule.template apply<V>(row * update.width + number, V::load(update.values + at));
  }
};

/// `wide`: the table's addresses are aligned for Wide.
template <typename Rule>
void move_rows(const Lane& lane, const char* name, const RowUpdate& update, bool wide, const Rule& rule) {
  if (update.others)
    map_columns(lane, name, update.last - update.first, update.width, wide && wide_aligned(update.values),
                AllRows<Rule>{rule, update});
  else
    map_columns(lane, name, update.count, update.width, wide && wide_aligned(update.values),
                GivenRows<Rule>{rule, update});
}

class Update final : public UpdateKernels {
 public:
  void unscale(const Lane& lane, std::int64_t count, float factor, float* g,
               std::int32_t* not_finite) const override {
    for_each_element(lane, "unscale", count, wide_aligned(g), Unscale{factor, g, not_finite});
  }

  void gradient_descent(const Lane& lane, std::int64_t count, float* w, const float* g,
                        float lr) const override {
    for_each_element(lane, "gradient_descent", count, wide_aligned(w, g), Dense<GradientDescent>{{w, lr}, g});
  }

  void momentum(const Lane& lane, std::int64_t count, float* w, const float* g, float* a, float lr, float mu,
                bool nesterov) const override {
    if (nesterov)
      for_each_element(lane, "momentum", count, wide_aligned(w, g, a),
                       Dense<Momentum<true>>{{w, a, lr, mu, lr * mu}, g});
    else
      for_each_element(lane, "momentum", count, wide_aligned(w, g, a),
                       Dense<Momentum<false>>{{w, a, lr, mu, lr * mu}, g});
  }

  void adam(const Lane& lane, std::int64_t count, float* w, const float* g, float* m, float* v, float alpha,
            float beta1, float beta2, float epsilon) const override {
    for_each_element(lane, "adam", count, wide_aligned(w, g, m, v),
                     Dense<Adam>{{w, m, v, alpha, 1.0F - beta1, 1.0F - beta2, epsilon}, g});
  }

  void gradient_descent_rows(const Lane& lane, const RowUpdate& update, float* w, float lr) const override {
    move_rows(lane, "gradient_descent_rows", update, wide_aligned(w), GradientDescent{w, lr});
  }

  void momentum_rows(const Lane& lane, const RowUpdate& update, float* w, float* a, float lr, float mu,
                     bool nesterov) const override {
    if (nesterov)
      move_rows(lane, "momentum_rows", update, wide_aligned(w, a), Momentum<true>{w, a, lr, mu, lr * mu});
    else
      move_rows(lane, "momentum_rows", update, wide_aligned(w, a), Momentum<false>{w, a, lr, mu, lr * mu});
  }

  void adam_rows(const Lane& lane, const RowUpdate& update, float* w, float* m, float* v, float alpha,
                 float beta1, float beta2, float epsilon) const override {
    move_rows(lane, "adam_rows", update, wide_aligned(w, m, v),
              Adam{w, m, v, alpha, 1.0F - beta1, 1.0F - beta2, epsilon});
  }
};

}  // namespace

const UpdateKernels& update_kernels() {
  static const Update kernels;
  return kernels;
}

}  // namespace lockstep::cuda
