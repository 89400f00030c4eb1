// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Cells of recurrent layers on the CPU, per instruction-set level (isa.h). A row is processed in registers,
// its remainder one element at a time.
//
// Why gates are own kernels between two products, with recurrent weights that are packed once per step: an
// LSTM or GRU multiplies few rows by the same weights in each of many time steps, and matmul reorders plain
// weights in each call: +100 % time at 4 rows, +6 % at 64. The LSTM of oneDNN 2.6 took 57 ms of processor
// time where the whole training step here took 53, and does not support lengths. Small microshards cost no
// speed: an LSTM in 16 microshards of four samples took 52.8 ms of processor time, in 4 of sixteen 54.2.
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

/// Calls body(first column, zero) for the pieces of a row; zero has the type of a piece.
template <typename Body>
inline void for_columns(std::int64_t columns, const Body& body) {
  std::int64_t j = 0;
  for (; j + kLanes <= columns; j += kLanes) body(j, Vec{});
  for (; j < columns; ++j) body(j, 0.0F);
}

template <typename V, typename T>
inline V load(const T* p) {
  return Lanes<V>::load(p);
}
template <typename V, typename T>
inline V load_or_zero(const T* p, std::int64_t at) {
  return p == nullptr ? V{} : Lanes<V>::load(p + at);
}
/// a + b; a if b is null.
template <typename V>
inline V sum_or_zero(const float* a, const float* b, std::int64_t at) {
  const V value = load_or_zero<V>(a, at);
  return b == nullptr ? value : value + load<V>(b + at);
}
template <typename T, typename V>
inline void store(T* p, V value) {
  Lanes<V>::store(p, value);
}

template <typename T>
inline void copy_or_zero(std::int64_t count, const T* from, std::int64_t at, T* to) {
  for (std::int64_t j = 0; j < count; ++j) to[j] = from == nullptr ? T{} : from[at + j];
}
template <typename T>
inline void zero(std::int64_t count, T* to) {
  for (std::int64_t j = 0; j < count; ++j) to[j] = T{};
}
inline void add_if_there(std::int64_t count, float* to, const float* from, std::int64_t at) {
  for (std::int64_t j = 0; j < count; ++j) to[j] = (from == nullptr ? 0.0F : from[at + j]) + to[j];
}

template <typename T>
void lstm_forward_of(const RecurrentStep& s, float* gates, const float* recurrent, float forget_bias,
                     const float* c_before, const T* h_before, float* c, T* h, StridedRows<T*> y) {
  const std::int64_t u = s.units;
  for (std::int64_t row = 0; row < s.n; ++row) {
    const std::int64_t at = row * u;
    T* output = y.data == nullptr ? nullptr : y.data + row * y.stride;
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
      const V f =
          fast_sigmoid(load<V>(g + 2 * u + k) + load_or_zero<V>(recurrent, 4 * at + 2 * u + k) + forget_bias);
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

template <typename T>
void lstm_backward_of(const RecurrentStep& s, const float* gates, T* dgates, const float* c_before,
                      const float* c, const float* recurrent, float* dh, float* dc,
                      StridedRows<const T*> dy) {
  const std::int64_t u = s.units;
  for (std::int64_t row = 0; row < s.n; ++row) {
    const std::int64_t at = row * u;
    const float* g = gates + 4 * at;
    T* dg = dgates + 4 * at;
    if (!takes_part(s, row)) {
      zero(4 * u, dg);
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
      store(dg + k, dcell * j * (i * (1.0F - i)));
      store(dg + u + k, dcell * i * (1.0F - j * j));
      store(dg + 2 * u + k, dcell * load_or_zero<V>(c_before, at + k) * (f * (1.0F - f)));
      store(dg + 3 * u + k, dstate * t * (o * (1.0F - o)));
      store(dc + at + k, dcell * f);
      store(dh + at + k, V{});
    });
  }
}

template <typename T>
void gru_gates_of(const RecurrentStep& s, float* gates, const float* recurrent, const T* h, T* reset_h) {
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

template <typename T>
void gru_output_of(const RecurrentStep& s, const float* gates, float* candidate, const float* recurrent,
                   bool reset_after, const float* h_before, float* h, T* rounded_h, StridedRows<T*> y) {
  const std::int64_t u = s.units;
  for (std::int64_t row = 0; row < s.n; ++row) {
    const std::int64_t at = row * u;
    T* output = y.data == nullptr ? nullptr : y.data + row * y.stride;
    if (!takes_part(s, row)) {
      copy_or_zero(u, h_before, at, h + at);
      if (output != nullptr) zero(u, output);
      if (rounded_h != nullptr)
        for (std::int64_t k = at; k < at + u; ++k) rounded_h[k] = from_float<T>(h[k]);
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
      if (rounded_h != nullptr) store(rounded_h + at + k, state);
    });
  }
}

template <typename T>
void gru_output_backward_of(const RecurrentStep& s, const RecurrentKernels::GruStep& of,
                            const float* recurrent, const float* through, float* dh,
                            StridedRows<const T*> dy) {
  const std::int64_t u = s.units;
  T *dgates = of.dgates.as<T>(), *dcandidates = of.dcandidate.as<T>(),
    *dreset_product = of.reset_product == nullptr ? nullptr : of.dreset_product.as<T>();
  for (std::int64_t row = 0; row < s.n; ++row) {
    const std::int64_t at = row * u;
    const float* g = of.gates + 2 * at;
    T* dg = dgates + 2 * at;
    if (!takes_part(s, row)) {
      zero(2 * u, dg);
      zero(u, dcandidates + at);
      if (dreset_product != nullptr) zero(u, dreset_product + at);
      for (std::int64_t k = at; k < at + u; ++k) dh[k] = sum_or_zero<float>(recurrent, through, k) + dh[k];
      continue;
    }
    const std::int64_t from = row * dy.stride;
    for_columns(u, [&]<typename V>(std::int64_t k, V) {
      const V update = load<V>(g + u + k), new_state = load<V>(of.candidate + at + k);
      const V dstate = (sum_or_zero<V>(recurrent, through, at + k) + load<V>(dh + at + k)) +
                       load_or_zero<V>(dy.data, from + k);
      const V dcandidate = dstate * (1.0F - update) * (1.0F - new_state * new_state);
      store(dg + u + k,
            dstate * (load_or_zero<V>(of.h_before, at + k) - new_state) * (update * (1.0F - update)));
      store(dcandidates + at + k, dcandidate);
      store(dh + at + k, dstate * update);
      if (dreset_product == nullptr) return;
      const V r = load<V>(g + k), product = load<V>(of.reset_product + at + k);
      store(dg + k, dcandidate * product * (r * (1.0F - r)));
      store(dreset_product + at + k, dcandidate * r);
    });
  }
}

template <typename T>
void gru_gates_backward_of(const RecurrentStep& s, const float* gates, const T* h, const float* dreset_h,
                           T* dgates, float* dh) {
  const std::int64_t u = s.units;
  for (std::int64_t row = 0; row < s.n; ++row) {
    const std::int64_t at = row * u;
    if (!takes_part(s, row)) {
      zero(u, dh + at);
      continue;
    }
    for_columns(u, [&]<typename V>(std::int64_t k, V) {
      const V r = load<V>(gates + 2 * at + k), gradient = load_or_zero<V>(dreset_h, at + k);
      store(dgates + 2 * at + k, gradient * load_or_zero<V>(h, at + k) * (r * (1.0F - r)));
      store(dh + at + k, gradient * r);
    });
  }
}

class Recurrent final : public RecurrentKernels {
 public:
  bool fuses(DType, std::int64_t, std::int64_t, std::int64_t) const override { return false; }

  void lstm_forward(const Lane&, const RecurrentStep& s, float* gates, const RecurrentTerm& recurrent,
                    float forget_bias, const float* c_before, ConstData h_before, float* c, Data h,
                    StridedRows<Data> y) const override {
    with_type(h.type(), [&]<typename T>(T) {
      lstm_forward_of<T>(s, gates, recurrent.computed(), forget_bias, c_before, h_before.as<T>(), c,
                         h.as<T>(), {y.data.as<T>(), y.stride});
    });
  }

  void lstm_backward(const Lane&, const RecurrentStep& s, const float* gates, Data dgates,
                     const float* c_before, const float* c, const RecurrentTerm& recurrent, float* dh,
                     float* dc, StridedRows<ConstData> dy) const override {
    with_type(dgates.type(), [&]<typename T>(T) {
      lstm_backward_of<T>(s, gates, dgates.as<T>(), c_before, c, recurrent.computed(), dh, dc,
                          {dy.data.as<T>(), dy.stride});
    });
  }

  void gru_gates(const Lane&, const RecurrentStep& s, float* gates, const RecurrentTerm& recurrent,
                 ConstData h, Data reset_h) const override {
    with_type(reset_h.type(), [&]<typename T>(T) {
      T* wanted = reset_h.as<T>();
      gru_gates_of<T>(s, gates, recurrent.computed(), wanted == nullptr ? nullptr : h.as<T>(), wanted);
    });
  }

  void gru_output(const Lane&, const RecurrentStep& s, const float* gates, float* candidate,
                  const RecurrentTerm& recurrent, bool reset_after, const float* h_before, float* h,
                  Data rounded_h, StridedRows<Data> y) const override {
    with_type(y.data == nullptr ? rounded_h.type() : y.data.type(), [&]<typename T>(T) {
      gru_output_of<T>(s, gates, candidate, recurrent.computed(), reset_after, h_before, h, rounded_h.as<T>(),
                       {y.data.as<T>(), y.stride});
    });
  }

  void gru_reset_after(const Lane& lane, const RecurrentStep& s, float* gates, const RecurrentTerm& recurrent,
                       float* candidate, const RecurrentTerm& product, const float* product_bias,
                       float* reset_product, const float* h_before, float* h, Data rounded_h,
                       StridedRows<Data> y) const override {
    const float* computed = product.computed();
    if (computed == nullptr) {
      for (std::int64_t row = 0; row < s.n; ++row)
        for (std::int64_t k = 0; k < s.units; ++k) reset_product[row * s.units + k] = product_bias[k];
      computed = reset_product;
    }
    gru_gates(lane, s, gates, recurrent, nullptr, nullptr);
    gru_output(lane, s, gates, candidate, computed, true, h_before, h, rounded_h, y);
  }

  void gru_output_backward(const Lane&, const RecurrentStep& s, const GruStep& of,
                           const RecurrentTerm& recurrent, const float* through_reset, float* dh,
                           StridedRows<ConstData> dy) const override {
    with_type(of.dgates.type(), [&]<typename T>(T) {
      gru_output_backward_of<T>(s, of, recurrent.computed(), through_reset, dh, {dy.data.as<T>(), dy.stride});
    });
  }

  void gru_gates_backward(const Lane&, const RecurrentStep& s, const float* gates, ConstData h,
                          const RecurrentTerm& dreset_h, Data dgates, float* dh) const override {
    with_type(dgates.type(), [&]<typename T>(T) {
      gru_gates_backward_of<T>(s, gates, h.as<T>(), dreset_h.computed(), dgates.as<T>(), dh);
    });
  }
};

}  // namespace

const RecurrentKernels& recurrent_kernels() {
  static const Recurrent kernels;
  return kernels;
}

}  // namespace LOCKSTEP_ISA
}  // namespace lockstep
