// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Cells of recurrent layers on a GPU: one thread per sample and unit, with the CPU's arithmetic.
#include "kernels/recurrent.h"

#include "kernels/cuda_vector.h"
#include "kernels/factory_cuda.h"
#include "kernels/gate_math.h"

namespace lockstep::cuda {
namespace {

/// A thread's sample and unit, and its index in n x units matrices.
struct Cell {
  std::int64_t row, unit, at;
  bool active;
};
inline __device__ Cell cell_of(const RecurrentStep& s, std::int64_t i) {
  const std::int64_t row = i / s.units;
  return {row, i % s.units, i, s.lengths == nullptr || static_cast<float>(s.step) < s.lengths[row]};
}
template <typename T>
inline __device__ float value_or_zero(const T* p, std::int64_t at) {
  return p == nullptr ? 0.0F : widened(p[at]);
}

/// Launches an operation with run(i) for each sample and unit.
template <typename Op>
void for_each_cell(const Lane& lane, const char* name, const RecurrentStep& s, const Op& op) {
  for_each_element(lane, name, s.n * s.units, false, op);
}

template <typename T>
struct LstmForward {
  RecurrentStep s;
  float* gates;
  const float* recurrent;
  float forget_bias;
  const float* c_before;
  const T* h_before;
  float* c;
  T* h;
  StridedRows<T*> y;
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
    h[cell.at] = narrowed<T>(state);  // exact if it came from h_before
    if (y.data != nullptr) y.data[cell.row * y.stride + cell.unit] = narrowed<T>(cell.active ? state : 0.0F);
  }
};

template <typename T>
struct LstmBackward {
  RecurrentStep s;
  const float* gates;
  T* dgates;
  const float* c_before;
  const float* c;
  const float* recurrent;
  float* dh;
  float* dc;
  StridedRows<const T*> dy;
  template <typename V>
  __device__ void run(std::int64_t first) const {
    for (int k = 0; k < V::kWidth; ++k) one(first + k);
  }
  __device__ void one(std::int64_t index) const {
    const Cell cell = cell_of(s, index);
    const std::int64_t u = s.units, g = 4 * cell.row * u + cell.unit;
    const float later = value_or_zero(recurrent, cell.at) + dh[cell.at];
    if (!cell.active) {
      dgates[g] = dgates[g + u] = dgates[g + 2 * u] = dgates[g + 3 * u] = T{};
      dh[cell.at] = later;
      return;
    }
    const float i = gates[g], j = gates[g + u], f = gates[g + 2 * u], o = gates[g + 3 * u];
    const float t = fast_tanh(c[cell.at]);
    const float dstate = later + value_or_zero(dy.data, cell.row * dy.stride + cell.unit);
    const float dcell = dc[cell.at] + dstate * o * (1.0F - t * t);
    dgates[g] = narrowed<T>(dcell * j * (i * (1.0F - i)));
    dgates[g + u] = narrowed<T>(dcell * i * (1.0F - j * j));
    dgates[g + 2 * u] = narrowed<T>(dcell * value_or_zero(c_before, cell.at) * (f * (1.0F - f)));
    dgates[g + 3 * u] = narrowed<T>(dstate * t * (o * (1.0F - o)));
    dc[cell.at] = dcell * f;
    dh[cell.at] = 0.0F;
  }
};

template <typename T>
struct GruGates {
  RecurrentStep s;
  float* gates;
  const float* recurrent;
  const T* h;
  T* reset_h;
  template <typename V>
  __device__ void run(std::int64_t first) const {
    for (int k = 0; k < V::kWidth; ++k) one(first + k);
  }
  __device__ void one(std::int64_t index) const {
    const Cell cell = cell_of(s, index);
    if (!cell.active) {
      if (reset_h != nullptr) reset_h[cell.at] = T{};
      return;
    }
    const std::int64_t u = s.units, g = 2 * cell.row * u + cell.unit;
    const float r = fast_sigmoid(gates[g] + value_or_zero(recurrent, g));
    gates[g] = r;
    gates[g + u] = fast_sigmoid(gates[g + u] + value_or_zero(recurrent, g + u));
    if (reset_h != nullptr) reset_h[cell.at] = narrowed<T>(r * value_or_zero(h, cell.at));
  }
};

template <typename T>
struct GruOutput {
  RecurrentStep s;
  const float* gates;
  float* candidate;
  const float* recurrent;
  bool reset_after;
  const float* h_before;
  float* h;
  StridedRows<T*> y;
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
    if (y.data != nullptr) y.data[cell.row * y.stride + cell.unit] = narrowed<T>(cell.active ? state : 0.0F);
  }
};

template <typename T>
struct GruOutputBackward {
  RecurrentStep s;
  const float* gates;
  const float* candidate;
  const float* reset_product;
  const float* h_before;
  T* dgates;
  T* dcandidate;
  T* dreset_product;
  const float* recurrent;
  float* dh;
  StridedRows<const T*> dy;
  template <typename V>
  __device__ void run(std::int64_t first) const {
    for (int k = 0; k < V::kWidth; ++k) one(first + k);
  }
  __device__ void one(std::int64_t index) const {
    const Cell cell = cell_of(s, index);
    const std::int64_t u = s.units, g = 2 * cell.row * u + cell.unit;
    const float later = value_or_zero(recurrent, cell.at) + dh[cell.at];
    if (!cell.active) {
      dgates[g] = dgates[g + u] = dcandidate[cell.at] = T{};
      if (reset_product != nullptr) dreset_product[cell.at] = T{};
      dh[cell.at] = later;
      return;
    }
    const float update = gates[g + u], new_state = candidate[cell.at];
    const float dstate = later + value_or_zero(dy.data, cell.row * dy.stride + cell.unit);
    const float dtanh = dstate * (1.0F - update) * (1.0F - new_state * new_state);
    dgates[g + u] =
        narrowed<T>(dstate * (value_or_zero(h_before, cell.at) - new_state) * (update * (1.0F - update)));
    dcandidate[cell.at] = narrowed<T>(dtanh);
    dh[cell.at] = dstate * update;
    if (reset_product == nullptr) return;
    const float r = gates[g];
    dgates[g] = narrowed<T>(dtanh * reset_product[cell.at] * (r * (1.0F - r)));
    dreset_product[cell.at] = narrowed<T>(dtanh * r);
  }
};

template <typename T>
struct GruGatesBackward {
  RecurrentStep s;
  const float* gates;
  const T* h;
  const float* dreset_h;
  T* dgates;
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
    dgates[g] = narrowed<T>(gradient * value_or_zero(h, cell.at) * (r * (1.0F - r)));
    dh[cell.at] = gradient * r;
  }
};

class Recurrent final : public RecurrentKernels {
 public:
  void lstm_forward(const Lane& lane, const RecurrentStep& s, float* gates, const float* recurrent,
                    float forget_bias, const float* c_before, ConstData h_before, float* c, Data h,
                    StridedRows<Data> y) const override {
    with_type(h.type(), [&]<typename T>(T) {
      for_each_cell(lane, "lstm_forward", s,
                    LstmForward<T>{s,
                                   gates,
                                   recurrent,
                                   forget_bias,
                                   c_before,
                                   h_before.as<T>(),
                                   c,
                                   h.as<T>(),
                                   {y.data.as<T>(), y.stride}});
    });
  }

  void lstm_backward(const Lane& lane, const RecurrentStep& s, const float* gates, Data dgates,
                     const float* c_before, const float* c, const float* recurrent, float* dh, float* dc,
                     StridedRows<ConstData> dy) const override {
    with_type(dgates.type(), [&]<typename T>(T) {
      for_each_cell(
          lane, "lstm_backward", s,
          LstmBackward<T>{
              s, gates, dgates.as<T>(), c_before, c, recurrent, dh, dc, {dy.data.as<T>(), dy.stride}});
    });
  }

  void gru_gates(const Lane& lane, const RecurrentStep& s, float* gates, const float* recurrent, ConstData h,
                 Data reset_h) const override {
    with_type(reset_h.type(), [&]<typename T>(T) {
      T* wanted = reset_h.as<T>();
      for_each_cell(lane, "gru_gates", s,
                    GruGates<T>{s, gates, recurrent, wanted == nullptr ? nullptr : h.as<T>(), wanted});
    });
  }

  void gru_output(const Lane& lane, const RecurrentStep& s, const float* gates, float* candidate,
                  const float* recurrent, bool reset_after, const float* h_before, float* h,
                  StridedRows<Data> y) const override {
    with_type(y.data.type(), [&]<typename T>(T) {
      for_each_cell(
          lane, "gru_output", s,
          GruOutput<T>{s, gates, candidate, recurrent, reset_after, h_before, h, {y.data.as<T>(), y.stride}});
    });
  }

  void gru_output_backward(const Lane& lane, const RecurrentStep& s, const GruStep& of,
                           const float* recurrent, float* dh, StridedRows<ConstData> dy) const override {
    with_type(of.dgates.type(), [&]<typename T>(T) {
      for_each_cell(lane, "gru_output_backward", s,
                    GruOutputBackward<T>{s,
                                         of.gates,
                                         of.candidate,
                                         of.reset_product,
                                         of.h_before,
                                         of.dgates.as<T>(),
                                         of.dcandidate.as<T>(),
                                         of.reset_product == nullptr ? nullptr : of.dreset_product.as<T>(),
                                         recurrent,
                                         dh,
                                         {dy.data.as<T>(), dy.stride}});
    });
  }

  void gru_gates_backward(const Lane& lane, const RecurrentStep& s, const float* gates, ConstData h,
                          const float* dreset_h, Data dgates, float* dh) const override {
    with_type(dgates.type(), [&]<typename T>(T) {
      for_each_cell(lane, "gru_gates_backward", s,
                    GruGatesBackward<T>{s, gates, h.as<T>(), dreset_h, dgates.as<T>(), dh});
    });
  }
};

}  // namespace

const RecurrentKernels& recurrent_kernels() {
  static const Recurrent kernels;
  return kernels;
}

}  // namespace lockstep::cuda
