// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A matrix product with an optional bias inside a larger layer: its variables, and one primitive per size of
// microshard. And Scratch, which cuts memory into parts.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "model/layer.h"
#include "model/layers/weight_packs.h"

namespace lockstep {

/// Hands out 64-byte aligned parts of memory, or (memory null) only counts them.
class Scratch {
 public:
  explicit Scratch(void* memory = nullptr) : begin_(static_cast<std::byte*>(memory)) {}
  template <typename T>
  T* take(std::int64_t count) {
    std::byte* part = begin_ == nullptr ? nullptr : begin_ + used_;
    used_ += (static_cast<std::size_t>(count) * sizeof(T) + 63) / 64 * 64;
    return reinterpret_cast<T*>(part);
  }
  std::size_t used_bytes() const { return used_; }
  /// The lane with what is left of its scratch, which is the memory.
  Lane rest_of(Lane lane) const {
    LOCKSTEP_CHECK(lane.scratch == begin_ && lane.scratch_bytes >= used_, "lane {} has {} bytes of scratch",
                   lane.index, lane.scratch_bytes);
    lane.scratch = begin_ + used_;
    lane.scratch_bytes -= used_;
    return lane;
  }

 private:
  std::byte* begin_;
  std::size_t used_ = 0;
};

/// y = x W + b for the last axis of `positions` rows per sample.
class Projection {
 public:
  Projection() = default;
  Projection(std::int64_t positions, std::int64_t in, std::int64_t out, bool bias)
      : positions_(positions), in_(in), out_(out), bias_(bias) {}

  /// Variables `prefix` + "_kernel" (in x out) and `prefix` + "_bias".
  void declare(VariableStore& variables, const std::string& prefix,
               const std::shared_ptr<const Initializer>& kernel_initializer,
               const std::shared_ptr<const Initializer>& bias_initializer);
  /// x, y and their gradients will be of `dtype`.
  void prepare(const PrepareContext& context, DType dtype = DType::f32);
  /// Weights have changed: repack. Needed where dtype has 16 bits, nothing otherwise.
  void refresh(const Lane& lane, const VariableStore& variables) const;
  std::size_t scratch_bytes() const { return scratch_bytes_; }
  std::string_view widened_products() const { return packs_.widened(); }

  void forward(const Pass& pass, const Lane& lane, ConstData x, Data y) const;
  /// Gradients of the variables, and of x unless dx is null.
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
