// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Cells of recurrent layers on a GPU, with the CPU's arithmetic. A thread handles one sample and unit.
// values() loads what a cell reads apart from its kTerms recurrent terms, so that a kernel that computes them
// (recurrent_product_cuda.h) can load early; finish() computes and stores. `recurrent` is the term's value of
// each gate. For *.cu files.
#pragma once

#include "kernels/cuda_vector.h"
#include "kernels/gate_math.h"
#include "kernels/recurrent.h"

namespace lockstep::cuda {

/// A thread's sample and unit, and its index in n x units matrices.
struct Cell {
  std::int64_t row, unit, at;
  bool active;
};
inline __device__ Cell cell_of(const RecurrentStep& s, std::int64_t row, std::int64_t unit) {
  return {row, unit, row * s.units + unit,
          s.lengths == nullptr || static_cast<float>(s.step) < s.lengths[row]};
}
template <typename T>
inline __device__ float value_or_zero(const T* p, std::int64_t at) {
  return p == nullptr ? 0.0F : widened(p[at]);
}

template <typename T>
struct LstmForward {
  static constexpr int kTerms = 4;
  RecurrentStep s;
  float* gates;
  float forget_bias;
  const float* c_before;
  const T* h_before;
  float* c;
  T* h;
  StridedRows<T*> y;
  struct Values {
    float gates[4], memory, state;
  };
  __device__ Values values(const Cell& cell) const {
    const float* g = gates + 4 * cell.row * s.units + cell.unit;
    Values v;
    for (int k = 0; k < 4; ++k) v.gates[k] = g[k * s.units];
    v.memory = value_or_zero(c_before, cell.at);
    v.state = cell.active ? 0.0F : value_or_zero(h_before, cell.at);
    return v;
  }
  __device__ void finish(const Cell& cell, const Values& v, const float (&recurrent)[4]) const {
    float memory = v.memory, state = v.state;
    if (cell.active) {
      float* g = gates + 4 * cell.row * s.units + cell.unit;
      const float i = fast_sigmoid(v.gates[0] + recurrent[0]);
      const float j = fast_tanh(v.gates[1] + recurrent[1]);
      const float f = fast_sigmoid(v.gates[2] + recurrent[2] + forget_bias);
      const float o = fast_sigmoid(v.gates[3] + recurrent[3]);
      memory = memory * f + i * j;
      state = fast_tanh(memory) * o;
      g[0] = i;
      g[s.units] = j;
      g[2 * s.units] = f;
      g[3 * s.units] = o;
    }
    c[cell.at] = memory;
    h[cell.at] = narrowed<T>(state);  // exact if it came from h_before
    if (y.data != nullptr) y.data[cell.row * y.stride + cell.unit] = narrowed<T>(cell.active ? state : 0.0F);
  }
};

template <typename T>
struct LstmBackward {
  static constexpr int kTerms = 1;
  RecurrentStep s;
  const float* gates;
  T* dgates;
  const float* c_before;
  const float* c;
  float* dh;
  float* dc;
  StridedRows<const T*> dy;
  struct Values {
    float gates[4], memory_before, memory, dh, dc, dy;
  };
  __device__ Values values(const Cell& cell) const {
    Values v = {};
    v.dh = dh[cell.at];
    if (!cell.active) return v;
    const float* g = gates + 4 * cell.row * s.units + cell.unit;
    for (int k = 0; k < 4; ++k) v.gates[k] = g[k * s.units];
    v.memory_before = value_or_zero(c_before, cell.at);
    v.memory = c[cell.at];
    v.dc = dc[cell.at];
    v.dy = value_or_zero(dy.data, cell.row * dy.stride + cell.unit);
    return v;
  }
  __device__ void finish(const Cell& cell, const Values& v, const float (&recurrent)[1]) const {
    T* dg = dgates + 4 * cell.row * s.units + cell.unit;
    const float later = recurrent[0] + v.dh;
    if (!cell.active) {
      for (int k = 0; k < 4; ++k) dg[k * s.units] = T{};
      dh[cell.at] = later;
      return;
    }
    const float i = v.gates[0], j = v.gates[1], f = v.gates[2], o = v.gates[3], t = fast_tanh(v.memory);
    const float dstate = later + v.dy;
    const float dcell = v.dc + dstate * o * (1.0F - t * t);
    dg[0] = narrowed<T>(dcell * j * (i * (1.0F - i)));
    dg[s.units] = narrowed<T>(dcell * i * (1.0F - j * j));
    dg[2 * s.units] = narrowed<T>(dcell * v.memory_before * (f * (1.0F - f)));
    dg[3 * s.units] = narrowed<T>(dstate * t * (o * (1.0F - o)));
    dc[cell.at] = dcell * f;
    dh[cell.at] = 0.0F;
  }
};

template <typename T>
struct GruGates {
  static constexpr int kTerms = 2;
  RecurrentStep s;
  float* gates;
  const T* h;
  T* reset_h;
  struct Values {
    float gates[2], state;
  };
  __device__ Values values(const Cell& cell) const {
    const float* g = gates + 2 * cell.row * s.units + cell.unit;
    return {{g[0], g[s.units]}, value_or_zero(h, cell.at)};
  }
  __device__ void finish(const Cell& cell, const Values& v, const float (&recurrent)[2]) const {
    if (!cell.active) {
      if (reset_h != nullptr) reset_h[cell.at] = T{};
      return;
    }
    float* g = gates + 2 * cell.row * s.units + cell.unit;
    const float r = fast_sigmoid(v.gates[0] + recurrent[0]);
    g[0] = r;
    g[s.units] = fast_sigmoid(v.gates[1] + recurrent[1]);
    if (reset_h != nullptr) reset_h[cell.at] = narrowed<T>(r * v.state);
  }
};

template <typename T>
struct GruOutput {
  static constexpr int kTerms = 1;
  RecurrentStep s;
  const float* gates;
  float* candidate;
  bool reset_after;
  const float* h_before;
  float* h;
  T* rounded_h;
  StridedRows<T*> y;
  struct Values {
    float reset, update, candidate, state;
  };
  __device__ Values values(const Cell& cell) const {
    const float* g = gates + 2 * cell.row * s.units + cell.unit;
    return {g[0], g[s.units], candidate[cell.at], value_or_zero(h_before, cell.at)};
  }
  __device__ void finish(const Cell& cell, const Values& v, const float (&recurrent)[1]) const {
    const float product = reset_after ? recurrent[0] * v.reset : recurrent[0];
    output(cell, v, product);
  }
  __device__ void output(const Cell& cell, const Values& v, float product) const {
    float state = v.state;
    if (cell.active) {
      const float new_state = fast_tanh(v.candidate + product);
      state = v.update * state + (1.0F - v.update) * new_state;
      candidate[cell.at] = new_state;
    }
    h[cell.at] = state;
    if (rounded_h != nullptr) rounded_h[cell.at] = narrowed<T>(state);
    if (y.data != nullptr) y.data[cell.row * y.stride + cell.unit] = narrowed<T>(cell.active ? state : 0.0F);
  }
};

/// Gates and output. The third term is the candidate's product without its bias.
template <typename T>
struct GruResetAfter {
  static constexpr int kTerms = 3;
  float* gates;
  GruOutput<T> out;
  const float* product_bias;
  float* reset_product;
  struct Values {
    float bias;
    typename GruOutput<T>::Values of;
  };
  __device__ Values values(const Cell& cell) const { return {product_bias[cell.unit], out.values(cell)}; }
  __device__ void finish(const Cell& cell, const Values& v, const float (&recurrent)[3]) const {
    const float product = recurrent[2] + v.bias;
    reset_product[cell.at] = product;
    typename GruOutput<T>::Values of = v.of;
    if (cell.active) {
      float* g = gates + 2 * cell.row * out.s.units + cell.unit;
      g[0] = of.reset = fast_sigmoid(of.reset + recurrent[0]);
      g[out.s.units] = of.update = fast_sigmoid(of.update + recurrent[1]);
    }
    out.output(cell, of, product * of.reset);
  }
};

template <typename T>
struct GruOutputBackward {
  static constexpr int kTerms = 1;
  RecurrentStep s;
  const float* gates;
  const float* candidate;
  const float* reset_product;
  const float* h_before;
  T* dgates;
  T* dcandidate;
  T* dreset_product;
  const float* through_reset;
  float* dh;
  StridedRows<const T*> dy;
  struct Values {
    float reset, update, candidate, reset_product, state, through, dh, dy;
  };
  __device__ Values values(const Cell& cell) const {
    Values v = {};
    v.through = value_or_zero(through_reset, cell.at);
    v.dh = dh[cell.at];
    if (!cell.active) return v;
    const float* g = gates + 2 * cell.row * s.units + cell.unit;
    v.reset = g[0];
    v.update = g[s.units];
    v.candidate = candidate[cell.at];
    v.reset_product = value_or_zero(reset_product, cell.at);
    v.state = value_or_zero(h_before, cell.at);
    v.dy = value_or_zero(dy.data, cell.row * dy.stride + cell.unit);
    return v;
  }
  __device__ void finish(const Cell& cell, const Values& v, const float (&recurrent)[1]) const {
    T* dg = dgates + 2 * cell.row * s.units + cell.unit;
    const float product = through_reset == nullptr ? recurrent[0] : recurrent[0] + v.through;
    const float later = product + v.dh;
    if (!cell.active) {
      dg[0] = dg[s.units] = dcandidate[cell.at] = T{};
      if (reset_product != nullptr) dreset_product[cell.at] = T{};
      dh[cell.at] = later;
      return;
    }
    const float update = v.update, new_state = v.candidate, r = v.reset;
    const float dstate = later + v.dy;
    const float dtanh = dstate * (1.0F - update) * (1.0F - new_state * new_state);
    dg[s.units] = narrowed<T>(dstate * (v.state - new_state) * (update * (1.0F - update)));
    dcandidate[cell.at] = narrowed<T>(dtanh);
    dh[cell.at] = dstate * update;
    if (reset_product == nullptr) return;
    dg[0] = narrowed<T>(dtanh * v.reset_product * (r * (1.0F - r)));
    dreset_product[cell.at] = narrowed<T>(dtanh * r);
  }
};

template <typename T>
struct GruGatesBackward {
  static constexpr int kTerms = 1;
  RecurrentStep s;
  const float* gates;
  const T* h;
  T* dgates;
  float* dh;
  struct Values {
    float reset, state;
  };
  __device__ Values values(const Cell& cell) const {
    return {gates[2 * cell.row * s.units + cell.unit], value_or_zero(h, cell.at)};
  }
  __device__ void finish(const Cell& cell, const Values& v, const float (&dreset_h)[1]) const {
    if (!cell.active) {
      dh[cell.at] = 0.0F;
      return;
    }
    const float r = v.reset, gradient = dreset_h[0];
    dgates[2 * cell.row * s.units + cell.unit] = narrowed<T>(gradient * v.state * (r * (1.0F - r)));
    dh[cell.at] = gradient * r;
  }
};

/// A cell whose terms are in memory, n x (kTerms units); null: zeros.
template <typename Op>
struct CellOnly {
  Op op;
  RecurrentStep s;
  const float* recurrent;
  template <typename V>
  __device__ void run(std::int64_t index) const {
    const Cell cell = cell_of(s, index / s.units, index % s.units);
    const auto values = op.values(cell);
    const std::int64_t first = cell.row * Op::kTerms * s.units + cell.unit;
    float terms[Op::kTerms];
    for (int k = 0; k < Op::kTerms; ++k) terms[k] = value_or_zero(recurrent, first + k * s.units);
    op.finish(cell, values, terms);
  }
};

}  // namespace lockstep::cuda
