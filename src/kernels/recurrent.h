// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What an LSTM or GRU cell does between its matrix products, one time step of n samples at a call. Matrices
// are n x columns, row-major, dense, but for y and dy, whose rows lie `stride` elements apart. Row r takes
// part in the step if step < lengths[r] (lengths null: always); else its state is copied through, y is 0, and
// no gradient reaches its gates. A null matrix that is read counts as zeros, a null y or dy as not there.
// What is Data is of any type of activations, of one in a call: what products take or other layers see. It is
// widened, and rounded when it is stored; the rest is float32. Gradients of gates may lie where their gates
// do. Every instruction-set level, and a GPU, gives the same bits (gate_math.h). Plain types only (isa.h).
#pragma once

#include <cstdint>

#include "core/data.h"
#include "kernels/lane.h"

namespace lockstep {

struct RecurrentStep {
  std::int64_t n = 0, units = 0, step = 0;
  const float* lengths = nullptr;
};

/// Where a step's output goes, or its gradient comes from. Numbers: Data, ConstData or a pointer.
template <typename Numbers>
struct StridedRows {
  Numbers data = nullptr;
  std::int64_t stride = 0;
};

class RecurrentKernels {
 public:
  virtual ~RecurrentKernels();

  /// gates (n x 4 units: i, j, f, o): in, what the input and the bias give; out, sigmoid(i), tanh(j),
  /// sigmoid(f + forget_bias), sigmoid(o) of that and `recurrent`. c = c_before f + i j, h = tanh(c) o, y =
  /// h.
  virtual void lstm_forward(const Lane&, const RecurrentStep&, float* gates, const float* recurrent,
                            float forget_bias, const float* c_before, ConstData h_before, float* c, Data h,
                            StridedRows<Data> y) const = 0;
  /// The gradient of h is recurrent + dh + dy, that of c is dc besides. gates: forward's; dgates: the
  /// gradient before the activations. dc, dh: out, what goes to the step before but through the gates.
  virtual void lstm_backward(const Lane&, const RecurrentStep&, const float* gates, Data dgates,
                             const float* c_before, const float* c, const float* recurrent, float* dh,
                             float* dc, StridedRows<ConstData> dy) const = 0;

  /// gates (n x 2 units: r, u): in, what the input and the bias give; out, sigmoid of that and `recurrent`.
  /// reset_h = r h (null: not wanted).
  virtual void gru_gates(const Lane&, const RecurrentStep&, float* gates, const float* recurrent, ConstData h,
                         Data reset_h) const = 0;
  /// candidate: in, what the input and the bias give; out, tanh of that and `recurrent` (reset_after: r
  /// recurrent). h = u h_before + (1 - u) candidate, y = h.
  virtual void gru_output(const Lane&, const RecurrentStep&, const float* gates, float* candidate,
                          const float* recurrent, bool reset_after, const float* h_before, float* h,
                          StridedRows<Data> y) const = 0;
  /// What gru_output_backward has of the step forward, and what it makes of it. reset_product is forward's
  /// `recurrent` if reset_after, else null.
  struct GruStep {
    const float *gates, *candidate, *reset_product, *h_before;
    Data dgates, dcandidate, dreset_product;
  };
  /// The gradient of h is recurrent + dh + dy. Out: in u's half of dgates and in dcandidate the gradients
  /// before the activations; dh, what goes straight to the step before. With reset_product r's half, too, and
  /// dreset_product is its own gradient. Rows that take no part get zeros in all of them.
  virtual void gru_output_backward(const Lane&, const RecurrentStep&, const GruStep& of,
                                   const float* recurrent, float* dh, StridedRows<ConstData> dy) const = 0;
  /// r's half of dgates: its gradient before the activation from that of reset_h. dh: what goes to h through
  /// reset_h, overwritten.
  virtual void gru_gates_backward(const Lane&, const RecurrentStep&, const float* gates, ConstData h,
                                  const float* dreset_h, Data dgates, float* dh) const = 0;
};

}  // namespace lockstep
