// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A matrix product with an optional bias as a part of a larger layer: its variables, and one primitive per
// microshard size.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "model/layer.h"
#include "model/layers/scratch.h"
#include "model/layers/weight_packs.h"

namespace lockstep {

/// y = x W + b along the last axis, for `positions` rows per sample.
class Projection {
 public:
  Projection() = default;
  Projection(std::int64_t positions, std::int64_t in, std::int64_t out, bool bias)
      : positions_(positions), in_(in), out_(out), bias_(bias) {}

  /// Declares the variables `prefix`_kernel (in x out) and `prefix`_bias.
  void declare(VariableStore& variables, const std::string& prefix,
               const std::shared_ptr<const Initializer>& kernel_initializer,
               const std::shared_ptr<const Initializer>& bias_initializer);
  /// Makes the primitives, for x, y and gradients of type `dtype`.
  void prepare(const PrepareContext& context, DType dtype = DType::f32);
  /// Repacks changed weights. Does nothing if dtype is float32.
  void refresh(const Lane& lane, const VariableStore& variables) const;
  std::size_t scratch_bytes() const { return scratch_bytes_; }
  std::string_view widened_products() const { return packs_.widened(); }

  void forward(const Pass& pass, const Lane& lane, ConstData x, Data y) const;
  /// Computes the gradients of the variables, and that of x unless dx is null.
  void backward(const Pass& pass, const Lane& lane, ConstData x, ConstData dy, Data dx) const;

 private:
  struct Sized {
    std::int64_t n;
    bool training;
    std::unique_ptr<LinearPrimitive> primitive;
    std::size_t pack;  ///< in packs_
  };
  const Sized& sized(const Pass& pass) const;

  std::int64_t positions_ = 0, in_ = 0, out_ = 0;
  bool bias_ = false;
  VariableId kernel_id_ = VariableId::none, bias_id_ = VariableId::none;
  std::vector<Sized> sized_;
  WeightPacks packs_;
  std::size_t scratch_bytes_ = 0;
};

}  // namespace lockstep
