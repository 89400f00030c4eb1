// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/widened_linear.h"

#include <algorithm>

#include "core/error.h"

namespace lockstep {
namespace {

constexpr std::size_t kAlignment = 256;  // required by a GPU's libraries
std::size_t aligned(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }
std::size_t bytes_of(std::int64_t count, DType type) {
  return aligned(static_cast<std::size_t>(count) * size_in_bytes(type));
}

class WidenedLinear final : public LinearPrimitive {
 public:
  WidenedLinear(const ElementwiseKernels& kernels, std::unique_ptr<LinearPrimitive> inner, DType type,
                const LinearSizes& sizes, std::string why)
      : kernels_(kernels), inner_(std::move(inner)), type_(type), sizes_(sizes), why_(std::move(why)) {}

  std::size_t scratch_bytes() const override {
    return kAlignment + inner_->scratch_bytes() +
           std::max(x_bytes() + bytes_of(sizes_.y, DType::f32), bytes_of(sizes_.weights, type_));
  }
  std::size_t packed_bytes() const override { return weights_bytes() + inner_->packed_bytes(); }
  bool same_packing(const LinearPrimitive& other) const override {
    const auto* o = dynamic_cast<const WidenedLinear*>(&other);
    return o != nullptr && o->type_ == type_ && o->sizes_.weights == sizes_.weights &&
           inner_->same_packing(*o->inner_);
  }
  void pack(const Lane& lane, const float* weights, void* packed) const override {
    const Parts parts = cut(lane, bytes_of(sizes_.weights, type_));
    const Data narrow(parts.begin, type_);
    auto* rounded = static_cast<float*>(packed);
    kernels_.convert(lane, sizes_.weights, weights, narrow);
    kernels_.convert(lane, sizes_.weights, narrow, rounded);
    inner_->pack(parts.rest, rounded, static_cast<char*>(packed) + weights_bytes());
  }

  void forward(const Lane& lane, ConstData x, const float*, const void* packed, const float* bias,
               Data y) const override {
    const Parts parts = cut(lane);
    widen(lane, sizes_.x, x, parts.x());
    float* wide = sizes_.wide_y ? y.f32() : y_of(parts);
    inner_->forward(parts.rest, parts.x(), rounded(packed), inner_pack(packed), bias, wide);
    if (!sizes_.wide_y) narrow(lane, sizes_.y, wide, y);
  }
  void backward_data(const Lane& lane, ConstData dy, const float*, const void* packed,
                     Data dx) const override {
    const Parts parts = cut(lane);
    widen(lane, sizes_.y, dy, y_of(parts));
    float* wide = sizes_.wide_dx ? dx.f32() : parts.x();
    inner_->backward_data(parts.rest, y_of(parts), rounded(packed), inner_pack(packed), wide);
    if (!sizes_.wide_dx) narrow(lane, sizes_.x, wide, dx);
  }
  void backward_weights(const Lane& lane, ConstData x, ConstData dy, float* dweights) const override {
    const Parts parts = cut(lane);
    widen(lane, sizes_.x, x, parts.x());
    widen(lane, sizes_.y, dy, y_of(parts));
    inner_->backward_weights(parts.rest, parts.x(), y_of(parts), dweights);
  }
  double flops() const override { return inner_->flops(); }
  std::string_view widened() const override { return why_; }

 private:
  struct Parts {
    char* begin;
    Lane rest;  ///< the lane with the rest of the scratch, for the inner primitive
    float* x() const { return reinterpret_cast<float*>(begin); }
  };

  std::size_t x_bytes() const { return bytes_of(sizes_.x, DType::f32); }
  std::size_t weights_bytes() const { return bytes_of(sizes_.weights, DType::f32); }
  float* y_of(const Parts& parts) const { return reinterpret_cast<float*>(parts.begin + x_bytes()); }
  const float* rounded(const void* packed) const { return static_cast<const float*>(packed); }
  const void* inner_pack(const void* packed) const {
    return static_cast<const char*>(packed) + weights_bytes();
  }

  Parts cut(const Lane& lane) const { return cut(lane, x_bytes() + bytes_of(sizes_.y, DType::f32)); }
  Parts cut(const Lane& lane, std::size_t own_bytes) const {
    LOCKSTEP_CHECK(lane.scratch_bytes >= scratch_bytes(), "lane {} has {} bytes of scratch, needs {}",
                   lane.index, lane.scratch_bytes, scratch_bytes());
    auto* begin = static_cast<char*>(lane.scratch);
    begin += aligned(reinterpret_cast<std::size_t>(begin)) - reinterpret_cast<std::size_t>(begin);
    Lane rest = lane;
    rest.scratch = begin + own_bytes;
    rest.scratch_bytes = inner_->scratch_bytes();
    return {begin, rest};
  }
  void widen(const Lane& lane, std::int64_t count, ConstData from, float* to) const {
    kernels_.convert(lane, count, {address_in(type_, from), type_}, to);
  }
  void narrow(const Lane& lane, std::int64_t count, const float* from, Data to) const {
    kernels_.convert(lane, count, from, {address_in(type_, to), type_});
  }

  const ElementwiseKernels& kernels_;
  std::unique_ptr<LinearPrimitive> inner_;
  DType type_;
  LinearSizes sizes_;
  std::string why_;
};

}  // namespace

LinearSizes sizes_of(const ConvolutionSpec& s) {
  return {s.n * s.in_positions() * s.in_c, s.n * s.out_positions() * s.out_c, s.kernel_rows() * s.out_c};
}
LinearSizes sizes_of(const DenseSpec& s) {
  return {s.n * s.in, s.n * s.out, s.in * s.out, s.wide_y, s.wide_dx};
}

std::unique_ptr<LinearPrimitive> make_widened_linear(const ElementwiseKernels& kernels,
                                                     std::unique_ptr<LinearPrimitive> inner, DType type,
                                                     const LinearSizes& sizes, std::string why) {
  LOCKSTEP_CHECK(!why.empty(), "a widened product without a reason");
  return std::make_unique<WidenedLinear>(kernels, std::move(inner), type, sizes, std::move(why));
}

}  // namespace lockstep
