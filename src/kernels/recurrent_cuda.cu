// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Cells of recurrent layers on a GPU: one thread per sample and unit, in the CPU's arithmetic.
#include "kernels/recurrent.h"

#include "kernels/cuda_vector.h"
#include "kernels/factory_cuda.h"
#include "kernels/gate_math.h"

namespace lockstep::cuda {
namespace {

/// A thread's sample and unit, and its place in n x units matrices.
struct Cell {
  std::int64_t row, unit, at;
  bool active;
};
inline __device__ Cell cell_of(const RecurrentStep& s, std::int64_t i) {
  const std::int64_t row = i / s.units;
  return {row, i % s.units, i, s.lengths == nullptr || static_cast<float>(s.step) < s.lengths[row]};
}
inline __device__ float value_or_zero(const float* p, std::int64_t at) { return p == nullptr ? 0.0F : p[at]; }

/// What all of them are: run(i) for each sample and unit.
template <typename Op>
void for_each_cell(const Lane& lane, const char* name, const RecurrentStep& s, const Op& op) {
  for_each_element(lane, name, s.n * s.units, false, op);
}

struct LstmForward {
  RecurrentStep s;
  float* gates;
  const float* recurrent;
  float forget_bias;
  const float* c_before;
  const float* h_before;
  float* c;
  float* h;
  StridedRows<float> y;
  template <typename V>
  __device__ void run(std::int64_t first) const {
    for (int k = 0; k < V::kWidth; ++k) one(first + k);
  }
  __device__ void one(std::int64_t index) const {
    const Cell cell = cell_of(s, index);
    float memory = value_or_zero(c_before, cell.at), state = value_or_zero(h_before, cell.at);
    if (cell.active) {
      const std::int64_t u = s.units, g = 4 * cell.row * u + cell.unit;
      const float i = fast_sigmoid(gates[g] + value_or_zero(recurrent, g));
      const float j = fast_tanh(gates[g + u] + value_or_zero(recurrent, g + u));
      const float f = fast_sigmoid(gates[g + 2 * u] + value_or_zero(recurrent, g + 2 * u) + forget_bias);
      const float o = fast_sigmoid(gates[g + 3 * u] + value_or_zero(recurrent, g + 3 * u));
      memory = memory * f + i * j;
      state = fast_tanh(memory) * o;
      gates[g] = i;
      gates[g + u] = j;
      gates[g + 2 * u] = f;
      gates[g + 3 * u] = o;
    }
    c[cell.at] = memory;
    h[cell.at] = state;
    if (y.data != nullptr) y.data[cell.row * y.stride + cell.unit] = cell.active ? state : 0.0F;
  }
};

struct LstmBackward {
  RecurrentStep s;
  float* gates;
  const float* c_before;
  const float* c;
  const float* recurrent;
  float* dh;
  float* dc;
  StridedRows<const float> dy;
  template <typename V>
  __device__ void run(std::int64_t first) const {
    for (int k = 0; k < V::kWidth; ++k) one(first + k);
  }
  __device__ void one(std::int64_t index) const {
    const Cell cell = cell_of(s, index);
    const std::int64_t u = s.units, g = 4 * cell.row * u + cell.unit;
    const float later = value_or_zero(recurrent, cell.at) + dh[cell.at];
    if (!cell.active) {
      gates[g] = gates[g + u] = gates[g + 2 * u] = gates[g + 3 * u] = 0.0F;
      dh[cell.at] = later;
      return;
    }
    const float i = gates[g], j = gates[g + u], f = gates[g + 2 * u], o = gates[g + 3 * u];
    const float t = fast_tanh(c[cell.at]);
    const float dstate = later + value_or_zero(dy.data, cell.row * dy.stride + cell.unit);
    const float dcell = dc[cell.at] + dstate * o * (1.0F - t * t);
    gates[g] = dcell * j * (i * (1.0F - i));
    gates[g + u] = dcell * i * (1.0F - j * j);
    gates[g + 2 * u] = dcell * value_or_zero(c_before, cell.at) * (f * (1.0F - f));
    gates[g + 3 * u] = dstate * t * (o * (1.0F - o));
    dc[cell.at] = dcell * f;
    dh[cell.at] = 0.0F;
  }
};

struct GruGates {
  RecurrentStep s;
  float* gates;
  const float* recurrent;
  const float* h;
  float* reset_h;
  template <typename V>
  __device__ void run(std::int64_t first) const {
    for (int k = 0; k < V::kWidth; ++k) one(first + k);
  }
  __device__ void one(std::int64_t index) const {
    const Cell cell = cell_of(s, index);
    if (!cell.active) {
      if (reset_h != nullptr) reset_h[cell.at] = 0.0F;
      return;
    }
    const std::int64_t u = s.units, g = 2 * cell.row * u + cell.unit;
    const float r = fast_sigmoid(gates[g] + value_or_zero(recurrent, g));
    gates[g] = r;
    gates[g + u] = fast_sigmoid(gates[g + u] + value_or_zero(recurrent, g + u));
    if (reset_h != nullptr) reset_h[cell.at] = r * value_or_zero(h, cell.at);
  }
};

struct GruOutput {
  RecurrentStep s;
  const float* gates;
  float* candidate;
  const float* recurrent;
  bool reset_after;
  const float* h_before;
  float* h;
  StridedRows<float> y;
  template <typename V>
  __device__ void run(std::int64_t first) const {
    for (int k = 0; k < V::kWidth; ++k) one(first + k);
  }
  __device__ void one(std::int64_t index) const {
    const Cell cell = cell_of(s, index);
    float state = value_or_zero(h_before, cell.at);
    if (cell.active) {
      const std::int64_t u = s.units, g = 2 * cell.row * u + cell.unit;
      float product = value_or_zero(recurrent, cell.at);
      if (reset_after) product = product * gates[g];
      const float new_state = fast_tanh(candidate[cell.at] + product), update = gates[g + u];
      state = update * state + (1.0F - update) * new_state;
      candidate[cell.at] = new_state;
    }
    h[cell.at] = state;
    if (y.data != nullptr) y.data[cell.row * y.stride + cell.unit] = cell.active ? state : 0.0F;
  }
};

struct GruOutputBackward {
  RecurrentStep s;
  float* gates;
  float* candidate;
  float* reset_product;
  const float* h_before;
  const float* recurrent;
  float* dh;
  StridedRows<const float> dy;
  template <typename V>
  __device__ void run(std::int64_t first) const {
    for (int k = 0; k < V::kWidth; ++k) one(first + k);
  }
  __device__ void one(std::int64_t index) const {
    const Cell cell = cell_of(s, index);
    const std::int64_t u = s.units, g = 2 * cell.row * u + cell.unit;
    const float later = value_or_zero(recurrent, cell.at) + dh[cell.at];
    if (!cell.active) {
      gates[g] = gates[g + u] = candidate[cell.at] = 0.0F;
      if (reset_product != nullptr) reset_product[cell.at] = 0.0F;
      dh[cell.at] = later;
      return;
    }
    const float update = gates[g + u], new_state = candidate[cell.at];
    const float dstate = later + value_or_zero(dy.data, cell.row * dy.stride + cell.unit);
    const float dcandidate = dstate * (1.0F - update) * (1.0F - new_state * new_state);
    gates[g + u] = dstate * (value_or_zero(h_before, cell.at) - new_state) * (update * (1.0F - update));
    candidate[cell.at] = dcandidate;
    dh[cell.at] = dstate * update;
    if (reset_product == nullptr) return;
    const float r = gates[g];
    gates[g] = dcandidate * reset_product[cell.at] * (r * (1.0F - r));
    reset_product[cell.at] = dcandidate * r;
  }
};

struct GruGatesBackward {
  RecurrentStep s;
  float* gates;
  const float* h;
  const float* dreset_h;
  float* dh;
  template <typename V>
  __device__ void run(std::int64_t first) const {
    for (int k = 0; k < V::kWidth; ++k) one(first + k);
  }
  __device__ void one(std::int64_t index) const {
    const Cell cell = cell_of(s, index);
    if (!cell.active) {
      dh[cell.at] = 0.0F;
      return;
    }
    const std::int64_t g = 2 * cell.row * s.units + cell.unit;
    const float r = gates[g], gradient = value_or_zero(dreset_h, cell.at);
    gates[g] = gradient * value_or_zero(h, cell.at) * (r * (1.0F - r));
    dh[cell.at] = gradient * r;
  }
};

class Recurrent final : public RecurrentKernels {
 public:
  void lstm_forward(const Lane& lane, const RecurrentStep& s, float* gates, const float* recurrent,
                    float forget_bias, const float* c_before, const float* h_before, float* c, float* h,
                    StridedRows<float> y) const override {
    for_each_cell(lane, "lstm_forward", s,
                  LstmForward{s, gates, recurrent, forget_bias, c_before, h_before, c, h, y});
  }

  void lstm_backward(const Lane& lane, const RecurrentStep& s, float* gates, const float* c_before,
                     const float* c, const float* recurrent, float* dh, float* dc,
                     StridedRows<const float> dy) const override {
    for_each_cell(lane, "lstm_backward", s, LstmBackward{s, gates, c_before, c, recurrent, dh, dc, dy});
  }

  void gru_gates(const Lane& lane, const RecurrentStep& s, float* gates, const float* recurrent,
                 const float* h, float* reset_h) const override {
    for_each_cell(lane, "gru_gates", s, GruGates{s, gates, recurrent, h, reset_h});
  }

  void gru_output(const Lane& lane, const RecurrentStep& s, const float* gates, float* candidate,
                  const float* recurrent, bool reset_after, const float* h_before, float* h,
                  StridedRows<float> y) const override {
    for_each_cell(lane, "gru_output", s,
                  GruOutput{s, gates, candidate, recurrent, reset_after, h_before, h, y});
  }

  void gru_output_backward(const Lane& lane, const RecurrentStep& s, float* gates, float* candidate,
                           float* reset_product, const float* h_before, const float* recurrent, float* dh,
                           StridedRows<const float> dy) const override {
    for_each_cell(lane, "gru_output_backward", s,
                  GruOutputBackward{s, gates, candidate, reset_product, h_before, recurrent, dh, dy});
  }

  void gru_gates_backward(const Lane& lane, const RecurrentStep& s, float* gates, const float* h,
                          const float* dreset_h, float* dh) const override {
    for_each_cell(lane, "gru_gates_backward", s, GruGatesBackward{s, gates, h, dreset_h, dh});
  }
};

}  // namespace

const RecurrentKernels& recurrent_kernels() {
  static const Recurrent kernels;
  return kernels;
}

}  // namespace lockstep::cuda
