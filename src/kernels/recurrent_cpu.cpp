// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Cells of recurrent layers on the CPU, per instruction-set level (isa.h): a row is done in registers, its
// rest one by one.
#include "kernels/recurrent.h"

#include "kernels/gate_math.h"
#include "kernels/isa.h"
#include "kernels/vec.h"

namespace lockstep {
namespace {

using VecBits = std::uint32_t __attribute__((vector_size(kLanes * sizeof(float))));
template <>
struct FloatBits<Vec> {
  static Vec power_of_two(Vec shifted) {
    return reinterpret_cast<Vec>((reinterpret_cast<VecBits>(shifted) + 127U) << 23);
  }
};

}  // namespace

namespace LOCKSTEP_ISA {
namespace {

bool takes_part(const RecurrentStep& s, std::int64_t row) {
  return s.lengths == nullptr || static_cast<float>(s.step) < s.lengths[row];
}

/// Calls body(first column, zero) for the pieces of a row.
template <typename Body>
inline void for_columns(std::int64_t columns, const Body& body) {
  std::int64_t j = 0;
  for (; j + kLanes <= columns; j += kLanes) body(j, Vec{});
  for (; j < columns; ++j) body(j, 0.0F);
}

template <typename V>
inline V load(const float* p) {
  return Lanes<V>::load(p);
}
template <typename V>
inline V load_or_zero(const float* p, std::int64_t at) {
  return p == nullptr ? V{} : Lanes<V>::load(p + at);
}
template <typename V>
inline void store(float* p, V value) {
  Lanes<V>::store(p, value);
}

inline void copy_or_zero(std::int64_t count, const float* from, std::int64_t at, float* to) {
  for (std::int64_t j = 0; j < count; ++j) to[j] = from == nullptr ? 0.0F : from[at + j];
}
inline void zero(std::int64_t count, float* to) {
  for (std::int64_t j = 0; j < count; ++j) to[j] = 0.0F;
}
inline void add_if_there(std::int64_t count, float* to, const float* from, std::int64_t at) {
  for (std::int64_t j = 0; j < count; ++j) to[j] = (from == nullptr ? 0.0F : from[at + j]) + to[j];
}

class Recurrent final : public RecurrentKernels {
 public:
  void lstm_forward(const Lane&, const RecurrentStep& s, float* gates, const float* recurrent,
                    float forget_bias, const float* c_before, const float* h_before, float* c, float* h,
                    StridedRows<float> y) const override {
    const std::int64_t u = s.units;
    for (std::int64_t row = 0; row < s.n; ++row) {
      const std::int64_t at = row * u;
      float* output = y.data == nullptr ? nullptr : y.data + row * y.stride;
      if (!takes_part(s, row)) {
        copy_or_zero(u, c_before, at, c + at);
        copy_or_zero(u, h_before, at, h + at);
        if (output != nullptr) zero(u, output);
        continue;
      }
      float* g = gates + 4 * at;
      for_columns(u, [&]<typename V>(std::int64_t k, V) {
        const V i = fast_sigmoid(load<V>(g + k) + load_or_zero<V>(recurrent, 4 * at + k));
        const V j = fast_tanh(load<V>(g + u + k) + load_or_zero<V>(recurrent, 4 * at + u + k));
        const V f = fast_sigmoid(load<V>(g + 2 * u + k) + load_or_zero<V>(recurrent, 4 * at + 2 * u + k) +
                                 forget_bias);
        const V o = fast_sigmoid(load<V>(g + 3 * u + k) + load_or_zero<V>(recurrent, 4 * at + 3 * u + k));
        const V cell = load_or_zero<V>(c_before, at + k) * f + i * j;
        const V state = fast_tanh(cell) * o;
        store(g + k, i);
        store(g + u + k, j);
        store(g + 2 * u + k, f);
        store(g + 3 * u + k, o);
        store(c + at + k, cell);
        store(h + at + k, state);
        if (output != nullptr) store(output + k, state);
      });
    }
  }

  void lstm_backward(const Lane&, const RecurrentStep& s, float* gates, const float* c_before, const float* c,
                     const float* recurrent, float* dh, float* dc,
                     StridedRows<const float> dy) const override {
    const std::int64_t u = s.units;
    for (std::int64_t row = 0; row < s.n; ++row) {
      const std::int64_t at = row * u;
      float* g = gates + 4 * at;
      if (!takes_part(s, row)) {
        zero(4 * u, g);
        add_if_there(u, dh + at, recurrent, at);
        continue;
      }
      const std::int64_t from = row * dy.stride;
      for_columns(u, [&]<typename V>(std::int64_t k, V) {
        const V i = load<V>(g + k), j = load<V>(g + u + k), f = load<V>(g + 2 * u + k),
                o = load<V>(g + 3 * u + k), t = fast_tanh(load<V>(c + at + k));
        const V dstate =
            (load_or_zero<V>(recurrent, at + k) + load<V>(dh + at + k)) + load_or_zero<V>(dy.data, from + k);
        const V dcell = load<V>(dc + at + k) + dstate * o * (1.0F - t * t);
        store(g + k, dcell * j * (i * (1.0F - i)));
        store(g + u + k, dcell * i * (1.0F - j * j));
        store(g + 2 * u + k, dcell * load_or_zero<V>(c_before, at + k) * (f * (1.0F - f)));
        store(g + 3 * u + k, dstate * t * (o * (1.0F - o)));
        store(dc + at + k, dcell * f);
        store(dh + at + k, V{});
      });
    }
  }

  void gru_gates(const Lane&, const RecurrentStep& s, float* gates, const float* recurrent, const float* h,
                 float* reset_h) const override {
    const std::int64_t u = s.units;
    for (std::int64_t row = 0; row < s.n; ++row) {
      const std::int64_t at = row * u;
      float* g = gates + 2 * at;
      if (!takes_part(s, row)) {
        if (reset_h != nullptr) zero(u, reset_h + at);
        continue;
      }
      for_columns(u, [&]<typename V>(std::int64_t k, V) {
        const V r = fast_sigmoid(load<V>(g + k) + load_or_zero<V>(recurrent, 2 * at + k));
        store(g + k, r);
        store(g + u + k, fast_sigmoid(load<V>(g + u + k) + load_or_zero<V>(recurrent, 2 * at + u + k)));
        if (reset_h != nullptr) store(reset_h + at + k, r * load_or_zero<V>(h, at + k));
      });
    }
  }

  void gru_output(const Lane&, const RecurrentStep& s, const float* gates, float* candidate,
                  const float* recurrent, bool reset_after, const float* h_before, float* h,
                  StridedRows<float> y) const override {
    const std::int64_t u = s.units;
    for (std::int64_t row = 0; row < s.n; ++row) {
      const std::int64_t at = row * u;
      float* output = y.data == nullptr ? nullptr : y.data + row * y.stride;
      if (!takes_part(s, row)) {
        copy_or_zero(u, h_before, at, h + at);
        if (output != nullptr) zero(u, output);
        continue;
      }
      const float* g = gates + 2 * at;
      for_columns(u, [&]<typename V>(std::int64_t k, V) {
        V product = load_or_zero<V>(recurrent, at + k);
        if (reset_after) product = product * load<V>(g + k);
        const V new_state = fast_tanh(load<V>(candidate + at + k) + product), update = load<V>(g + u + k);
        const V state = update * load_or_zero<V>(h_before, at + k) + (1.0F - update) * new_state;
        store(candidate + at + k, new_state);
        store(h + at + k, state);
        if (output != nullptr) store(output + k, state);
      });
    }
  }

  void gru_output_backward(const Lane&, const RecurrentStep& s, float* gates, float* candidate,
                           float* reset_product, const float* h_before, const float* recurrent, float* dh,
                           StridedRows<const float> dy) const override {
    const std::int64_t u = s.units;
    for (std::int64_t row = 0; row < s.n; ++row) {
      const std::int64_t at = row * u;
      float* g = gates + 2 * at;
      if (!takes_part(s, row)) {
        zero(2 * u, g);
        zero(u, candidate + at);
        if (reset_product != nullptr) zero(u, reset_product + at);
        add_if_there(u, dh + at, recurrent, at);
        continue;
      }
      const std::int64_t from = row * dy.stride;
      for_columns(u, [&]<typename V>(std::int64_t k, V) {
        const V update = load<V>(g + u + k), new_state = load<V>(candidate + at + k);
        const V dstate =
            (load_or_zero<V>(recurrent, at + k) + load<V>(dh + at + k)) + load_or_zero<V>(dy.data, from + k);
        const V dcandidate = dstate * (1.0F - update) * (1.0F - new_state * new_state);
        store(g + u + k,
              dstate * (load_or_zero<V>(h_before, at + k) - new_state) * (update * (1.0F - update)));
        store(candidate + at + k, dcandidate);
        store(dh + at + k, dstate * update);
        if (reset_product == nullptr) return;
        const V r = load<V>(g + k);
        store(g + k, dcandidate * load<V>(reset_product + at + k) * (r * (1.0F - r)));
        store(reset_product + at + k, dcandidate * r);
      });
    }
  }

  void gru_gates_backward(const Lane&, const RecurrentStep& s, float* gates, const float* h,
                          const float* dreset_h, float* dh) const override {
    const std::int64_t u = s.units;
    for (std::int64_t row = 0; row < s.n; ++row) {
      const std::int64_t at = row * u;
      float* g = gates + 2 * at;
      if (!takes_part(s, row)) {
        zero(u, dh + at);
        continue;
      }
      for_columns(u, [&]<typename V>(std::int64_t k, V) {
        const V r = load<V>(g + k), gradient = load_or_zero<V>(dreset_h, at + k);
        store(g + k, gradient * load_or_zero<V>(h, at + k) * (r * (1.0F - r)));
        store(dh + at + k, gradient * r);
      });
    }
  }
};

}  // namespace

const RecurrentKernels& recurrent_kernels() {
  static const Recurrent kernels;
  return kernels;
}

}  // namespace LOCKSTEP_ISA
}  // namespace lockstep
