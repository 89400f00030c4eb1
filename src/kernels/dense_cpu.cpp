// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Dense layers on the CPU: oneDNN's matmul for all three passes, with the bias fused. By default the weights
// stay in their plain layout: packing them for inner_product saved at most a few per cent of the forward pass
// (bench/kernel_bench), and sgemm lost up to half of the backward pass at small n. If the spec requests
// packing, the weights are reordered once into the layouts that matmul prefers for the two passes. Otherwise
// matmul reorders them at each call, which costs as much as the product itself at 4 rows, and 6 % at 64.
//
// bfloat16 uses oneDNN's bfloat16 matmul, with float32 sums, bias and weight gradient, if the processor
// multiplies bfloat16; the pack holds the rounded weights in matmul's layouts. Otherwise, and always for
// float16, the float32 product runs on widened numbers (widened_linear.h).
#include <algorithm>
#include <optional>

#include "core/error.h"
#include "kernels/factory_cpu.h"
#include "kernels/kernel_table.h"
#include "kernels/onednn.h"
#include "kernels/widened_linear.h"

namespace lockstep {
namespace {

using onednn::Desc;
using onednn::Execution;
using onednn::Tag;

class CpuDense final : public LinearPrimitive {
 public:
  CpuDense(const DenseSpec& spec, int lanes) : spec_(spec) {
    LOCKSTEP_CHECK(spec.n > 0 && spec.in > 0 && spec.out > 0, "n {} in {} out {}", spec.n, spec.in, spec.out);
    onednn::create(
        fmt::format("a dense layer of {} rows, {} to {} features", spec.n, spec.in, spec.out), [&] {
          forward_pack_.extents = {spec.in, spec.out};
          backward_pack_.extents = {spec.out, spec.in};
          const DType type = spec.dtype;
          const Desc x = onednn::numbers(type, {spec.n, spec.in}, Tag::ab),
                     y = onednn::numbers(spec.y_type(), {spec.n, spec.out}, Tag::ab),
                     dy = onednn::numbers(type, {spec.n, spec.out}, Tag::ab),
                     dx = onednn::numbers(spec.dx_type(), {spec.n, spec.in}, Tag::ab);
          forward_ = matmul("dense forward", x, onednn::f32({spec.in, spec.out}, Tag::ab), y, spec.bias,
                            &forward_pack_, lanes);
          if (!spec.training) return 0;
          backward_data_ = matmul("dense backward data", dy, onednn::f32({spec.out, spec.in}, Tag::ba), dx,
                                  false, &backward_pack_, lanes);
          backward_weights_ =
              matmul("dense backward weights", onednn::numbers(type, {spec.in, spec.n}, Tag::ba), dy,
                     onednn::f32({spec.in, spec.out}, Tag::ab), false, nullptr, lanes);
          return 0;
        });
  }

  std::size_t scratch_bytes() const override { return scratch_bytes_; }
  std::size_t packed_bytes() const override { return forward_pack_.bytes() + backward_pack_.bytes(); }
  bool same_packing(const LinearPrimitive& other) const override {
    const auto* o = dynamic_cast<const CpuDense*>(&other);
    return o != nullptr && forward_pack_ == o->forward_pack_ && backward_pack_ == o->backward_pack_;
  }
  void pack(const Lane& lane, const float* weights, void* packed) const override {
    require_scratch(lane);
    forward_pack_.run(lane, weights, packed);
    backward_pack_.run(lane, weights, static_cast<char*>(packed) + forward_pack_.bytes());
  }

  void forward(const Lane& lane, ConstData x, const float* weights, const void* packed, const float* bias,
               Data y) const override {
    require_scratch(lane);
    const void* w = forward_pack_.reorder ? packed : weights;
    const void* from = address_in(spec_.dtype, x);
    void* to = address_in(spec_.y_type(), y);
    if (spec_.bias)
      forward_.run(lane, {from, w, to, lane.scratch, bias});
    else
      forward_.run(lane, {from, w, to, lane.scratch});
    // Not a oneDNN post-op: that turns NaN into 0, which would hide broken weights.
    if (spec_.relu) cpu_kernels().elementwise.relu(lane, spec_.n * spec_.out, y, y);
  }

  void backward_data(const Lane& lane, ConstData dy, const float* weights, const void* packed,
                     Data dx) const override {
    LOCKSTEP_CHECK(spec_.training, "backward pass of a primitive made without training");
    require_scratch(lane);
    const void* w = weights;
    if (backward_pack_.reorder) w = static_cast<const char*>(packed) + forward_pack_.bytes();
    backward_data_.run(lane, {address_in(spec_.dtype, dy), w, address_in(spec_.dx_type(), dx), lane.scratch});
  }

  void backward_weights(const Lane& lane, ConstData x, ConstData dy, float* dweights) const override {
    LOCKSTEP_CHECK(spec_.training, "backward pass of a primitive made without training");
    require_scratch(lane);
    backward_weights_.run(lane,
                          {address_in(spec_.dtype, x), address_in(spec_.dtype, dy), dweights, lane.scratch});
  }

  double flops() const override {
    return 2.0 * static_cast<double>(spec_.n * spec_.in) * static_cast<double>(spec_.out);
  }

 private:
  /// The weights of one pass in the layout that its product prefers.
  struct WeightsPack {
    onednn::Dims extents;
    Desc layout;
    std::optional<Execution> reorder;  ///< empty: the weights are used as they are
    std::size_t bytes() const { return reorder ? (layout.get_size() + 63) / 64 * 64 : 0; }
    bool operator==(const WeightsPack& other) const {
      return reorder.has_value() == other.reorder.has_value() && (!reorder || layout == other.layout);
    }
    void run(const Lane& lane, const float* weights, void* packed) const {
      if (reorder) reorder->run(lane, {weights, packed, lane.scratch});
    }
  };

  /// a times b. If `pack` is not null, b are the plain weights. The product then uses them in the layout of
  /// `pack`, if the spec requests packing or x is not float32.
  Execution matmul(const char* name, const Desc& a, const Desc& b, const Desc& c, bool bias,
                   WeightsPack* pack, int lanes) {
    const Desc bias_row = bias ? onednn::f32({1, spec_.out}, Tag::ab) : Desc();
    const bool packs = (spec_.packed || spec_.dtype != DType::f32) && pack != nullptr;
    const Desc wanted = packs ? onednn::numbers(spec_.dtype, pack->extents, Tag::any) : b;
    const auto desc = onednn::matmul({a, wanted, bias_row, c}, onednn::attributes());
    const Desc used = desc.weights_desc();
    if (packs && used != b) {
      const dnnl::reorder::primitive_desc reorder(onednn::engine(), b, onednn::engine(), used,
                                                  onednn::attributes());
      pack->layout = used;
      pack->reorder = Execution(
          dnnl::reorder(reorder), "reorder of dense weights",
          {{DNNL_ARG_FROM, b}, {DNNL_ARG_TO, used}, {DNNL_ARG_SCRATCHPAD, reorder.scratchpad_desc()}}, lanes);
      scratch_bytes_ = std::max(scratch_bytes_, reorder.scratchpad_desc().get_size());
    }
    std::vector<Execution::Argument> arguments{{DNNL_ARG_SRC, a},
                                               {DNNL_ARG_WEIGHTS, used},
                                               {DNNL_ARG_DST, c},
                                               {DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc()}};
    if (bias) arguments.push_back({DNNL_ARG_BIAS, bias_row});
    scratch_bytes_ = std::max(scratch_bytes_, desc.scratchpad_desc().get_size());
    return {dnnl::matmul(desc), name, arguments, lanes};
  }

  void require_scratch(const Lane& lane) const {
    LOCKSTEP_CHECK(lane.scratch_bytes >= scratch_bytes_, "lane {} has {} bytes of scratch, needs {}",
                   lane.index, lane.scratch_bytes, scratch_bytes_);
  }

  DenseSpec spec_;
  WeightsPack forward_pack_, backward_pack_;
  Execution forward_, backward_data_, backward_weights_;
  std::size_t scratch_bytes_ = 0;
};

}  // namespace

std::unique_ptr<LinearPrimitive> make_cpu_dense(const DenseSpec& spec, int lanes) {
  return make_in_its_type<CpuDense>(cpu_kernels().elementwise, onednn::why_not_multiplied(spec.dtype), spec,
                                    lanes);
}

}  // namespace lockstep
