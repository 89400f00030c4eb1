// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The element-wise part of an LSTM or GRU cell between its matrix products, one time step of n samples per
// call. Matrices are n x columns, row-major, dense, except y and dy, whose rows are `stride` elements apart.
// Row r is active in the step if step < lengths[r] (lengths null: always). The state of an inactive row is
// copied, its y is 0, and its gates receive no gradient. A null input matrix counts as zeros; a null y or dy
// is absent.
//
// Data arguments (operands of products or values for other layers) have any activation type, the same for all
// of a call; they are widened when loaded and rounded when stored. Everything else is float32. Gradients of
// gates may alias the gates. The bits are the same at every instruction-set level and on a GPU (gate_math.h).
// This header uses plain types only (isa.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/data.h"
#include "kernels/lane.h"

namespace lockstep {

struct RecurrentStep {
  std::int64_t n = 0, units = 0, step = 0;
  const float* lengths = nullptr;
};

/// h's part of a step's sums, or the part of a gradient that comes through a product. Either computed (`sum`;
/// null: zeros), or as factors: the kernel computes left matrix, or left times the transposed matrix in a
/// backward pass, and adds the second product if there is one. Only for shapes of RecurrentKernels::fuses().
struct RecurrentTerm {
  LOCKSTEP_INLINED RecurrentTerm() = default;
  LOCKSTEP_INLINED RecurrentTerm(std::nullptr_t) {}
  LOCKSTEP_INLINED RecurrentTerm(const float* computed) : sum(computed) {}
  LOCKSTEP_INLINED RecurrentTerm(float* computed) : sum(computed) {}
  struct Factors {
    ConstData left, matrix;  ///< of the same type; `left` has dense rows
  };
  LOCKSTEP_INLINED RecurrentTerm(const Factors& first, const Factors& second = {}) : factors{first, second} {}
  LOCKSTEP_INLINED bool is_product() const { return factors[0].left != nullptr; }
  /// `sum`. Factors are a bug.
  const float* computed() const;

  const float* sum = nullptr;
  Factors factors[2] = {};
};

/// Destination of a step's output, or source of its gradient. Numbers is Data, ConstData or a pointer.
template <typename Numbers>
struct StridedRows {
  Numbers data = nullptr;
  std::int64_t stride = 0;
};

class RecurrentKernels {
 public:
  virtual ~RecurrentKernels();

  /// Whether the kernels take a term's factors, so that a step's product and its cell are one kernel. Depends
  /// on the shape alone. `gates`: columns of all of the cell's recurrent matrices, in units.
  virtual bool fuses(DType type, std::int64_t n, std::int64_t units, std::int64_t gates) const = 0;

  /// gates (n x 4 units: i, j, f, o). In: the contributions of input and bias. Out: sigmoid(i), tanh(j),
  /// sigmoid(f + forget_bias), sigmoid(o), each of the sum with `recurrent`. c = c_before f + i j, h =
  /// tanh(c) o, y = h.
  virtual void lstm_forward(const Lane&, const RecurrentStep&, float* gates, const RecurrentTerm& recurrent,
                            float forget_bias, const float* c_before, ConstData h_before, float* c, Data h,
                            StridedRows<Data> y) const = 0;
  /// The gradient of h is recurrent + dh + dy; that of c is dc plus the part through h. gates: forward's.
  /// dgates: the gradient before the activations. dc, dh: out, the gradients for the previous step, except
  /// through the gates.
  virtual void lstm_backward(const Lane&, const RecurrentStep&, const float* gates, Data dgates,
                             const float* c_before, const float* c, const RecurrentTerm& recurrent, float* dh,
                             float* dc, StridedRows<ConstData> dy) const = 0;

  /// gates (n x 2 units: r, u). In: the contributions of input and bias. Out: the sigmoid of their sum with
  /// `recurrent`. reset_h = r h (null: not computed).
  virtual void gru_gates(const Lane&, const RecurrentStep&, float* gates, const RecurrentTerm& recurrent,
                         ConstData h, Data reset_h) const = 0;
  /// candidate. In: the contributions of input and bias. Out: tanh of the sum with `recurrent` (reset_after:
  /// with r recurrent). h = u h_before + (1 - u) candidate, y = h. rounded_h: h in y's type, also of inactive
  /// rows (null: not written).
  virtual void gru_output(const Lane&, const RecurrentStep&, const float* gates, float* candidate,
                          const RecurrentTerm& recurrent, bool reset_after, const float* h_before, float* h,
                          Data rounded_h, StridedRows<Data> y) const = 0;
  /// Both of them with reset_after. `product`: the candidate's. If it is computed, it contains product_bias
  /// and is reset_product, the operand of the backward pass. Else reset_product = its value + product_bias.
  virtual void gru_reset_after(const Lane&, const RecurrentStep&, float* gates,
                               const RecurrentTerm& recurrent, float* candidate, const RecurrentTerm& product,
                               const float* product_bias, float* reset_product, const float* h_before,
                               float* h, Data rounded_h, StridedRows<Data> y) const = 0;
  /// Inputs of gru_output_backward from the forward step, and its outputs. reset_product is forward's
  /// `recurrent` if reset_after, else null.
  struct GruStep {
    const float *gates, *candidate, *reset_product, *h_before;
    Data dgates, dcandidate, dreset_product;
  };
  /// The gradient of h is recurrent + dh + dy, with through_reset (null: zeros) added to recurrent first.
  /// Out: the gradients before the activations in u's half of dgates and in dcandidate; in dh, the direct
  /// gradient for the previous step. With reset_product, also r's half of dgates, and dreset_product is the
  /// gradient of reset_product. Inactive rows get zeros in dgates, dcandidate and dreset_product.
  virtual void gru_output_backward(const Lane&, const RecurrentStep&, const GruStep& of,
                                   const RecurrentTerm& recurrent, const float* through_reset, float* dh,
                                   StridedRows<ConstData> dy) const = 0;
  /// Computes r's half of dgates, the gradient before the activation, from that of reset_h. dh: the gradient
  /// of h through reset_h, overwritten.
  virtual void gru_gates_backward(const Lane&, const RecurrentStep&, const float* gates, ConstData h,
                                  const RecurrentTerm& dreset_h, Data dgates, float* dh) const = 0;
};

}  // namespace lockstep
