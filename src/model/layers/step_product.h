// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The product of [x, h] with one kernel, (in + units) x width, of a recurrent layer. In the forward pass, x's
// part is computed for all time steps at once and h's part step by step, with packed weights. In the backward
// pass, the gradient of h is computed step by step, and those of x, kernel and bias for all steps at once.
// Matrices are time-major: steps x n rows.
#pragma once

#include <memory>
#include <vector>

#include "model/layer.h"
#include "model/layers/weight_packs.h"

namespace lockstep {

class StepProduct {
 public:
  struct Options {
    std::int64_t in = 0, units = 0, width = 0, steps = 0;
    std::string kernel, bias;  ///< names of the variables
    std::shared_ptr<const Initializer> kernel_initializer, bias_initializer;
    std::string recurrent_bias = {};  ///< a bias of h's part alone; empty: none
  };
  explicit StepProduct(Options options) : o_(std::move(options)) {}

  void declare(VariableStore& variables);
  /// Makes the primitives for x, dx, h and dy of type `dtype`. y and dh are always float32, because other
  /// terms are added to them before rounding.
  void prepare(const PrepareContext& context, DType dtype = DType::f32);
  void refresh(const Lane& lane, const VariableStore& variables);
  std::size_t scratch_bytes() const { return scratch_bytes_; }
  std::string_view widened_products() const { return packs_.widened(); }
  double flops_per_sample() const {
    return 2.0 * static_cast<double>(o_.steps * o_.width) * static_cast<double>(o_.in + o_.units);
  }

  /// y (steps x n x width) = x W_x + bias.
  void all_steps(const Pass& pass, const Lane& lane, ConstData x, Data y) const;
  /// y (n x width) = h W_h (+ recurrent_bias).
  void one_step(const Pass& pass, const Lane& lane, ConstData h, Data y) const;
  /// The product of one_step() without recurrent_bias, or of one_step_backward() (`left` is dy), as a term of
  /// a step's kernel: its factors where `fused`, else its value, which is computed into `y`.
  RecurrentTerm term(const Pass& pass, const Lane& lane, bool fused, ConstData h, float* y) const {
    if (fused) return factors(pass, h);
    one_step(pass, lane, h, y);
    return y;
  }
  RecurrentTerm term_backward(const Pass& pass, const Lane& lane, bool fused, ConstData dy, float* dh) const {
    if (fused) return factors(pass, dy);
    one_step_backward(pass, lane, dy, dh);
    return dh;
  }
  /// A left operand and W_h in its type. Only where can_fuse().
  RecurrentTerm::Factors factors(const Pass& pass, ConstData left) const;
  /// Whether W_h exists in the type of activations.
  bool can_fuse() const { return packs_.widened().empty(); }
  const float* recurrent_bias(const Pass& pass) const { return pass.value(recurrent_bias_); }
  /// dh (n x units) = dy W_h'.
  void one_step_backward(const Pass& pass, const Lane& lane, ConstData dy, Data dh) const;
  /// Computes the gradients of W_x and bias, and that of x unless dx is null, from dy (steps x n x width).
  void all_steps_backward(const Pass& pass, const Lane& lane, ConstData x, ConstData dy, Data dx) const;
  /// Computes the gradient of W_h. h and dy are (steps - 1) x n rows: those whose h is not the initial state.
  void recurrent_gradient(const Pass& pass, const Lane& lane, ConstData h, ConstData dy) const;
  /// Computes the gradient of recurrent_bias. dy is steps x n rows.
  void recurrent_bias_gradient(const Pass& pass, const Lane& lane, ConstData dy) const;

 private:
  struct Sized {
    std::int64_t n;
    bool training;
    std::unique_ptr<LinearPrimitive> all, one, gradient;  ///< gradient: null with one step only
    std::size_t all_pack, one_pack;                       ///< in packs_
  };
  const Sized& sized(const Pass& pass) const;

  Options o_;
  VariableId kernel_ = VariableId::none, bias_ = VariableId::none, recurrent_bias_ = VariableId::none;
  std::vector<Sized> sized_;
  WeightPacks packs_;
  std::size_t scratch_bytes_ = 0;
};

}  // namespace lockstep
