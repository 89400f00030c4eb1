// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Convolution on the CPU: oneDNN's direct algorithms on channels-last activations. Only weights change
// layout. pack() reorders them once per step for the forward and the backward pass. A weight gradient in a
// layout of oneDNN's choice is reordered into the plain layout.
//
// bfloat16 uses oneDNN's bfloat16 convolution, with float32 sums, bias and weight gradient, if the processor
// multiplies bfloat16 and oneDNN has all three passes. Otherwise, and always for float16, the float32
// convolution runs on widened numbers (widened_linear.h).
//
// Why bfloat16 convolutions of some shapes run in float32: those of oneDNN 2.6 are wrong for volumes, groups,
// channels that are no multiple of 16, and margins wider than half of the window. Of random small shapes
// about one in a hundred had unwritten parts of the weights' gradient, a read past the end, or writes outside
// the memory. There the float32 convolution runs on widened numbers: activations take half the memory of
// float32, and the time is that of float32. The run names these layers at its start.
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
using onednn::Dims;
using onednn::Execution;
using onednn::Tag;

constexpr std::size_t kAlignment = 64;
std::size_t aligned(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

void require_valid(const ConvolutionSpec& s) {
  LOCKSTEP_CHECK(s.n > 0 && s.in_d > 0 && s.in_h > 0 && s.in_w > 0 && s.in_c > 0 && s.out_c > 0,
                 "n {} in {}x{}x{}x{} out_c {}", s.n, s.in_d, s.in_h, s.in_w, s.in_c, s.out_c);
  LOCKSTEP_CHECK(s.groups > 0 && s.in_c % s.groups == 0 && s.out_c % s.groups == 0,
                 "{} groups of {} and {} channels", s.groups, s.in_c, s.out_c);
  const auto extent = [](std::int64_t in, std::int64_t pads, std::int64_t kernel, std::int64_t dilation,
                         std::int64_t stride) {
    return (in + pads - (kernel - 1) * dilation - 1) / stride + 1;
  };
  LOCKSTEP_CHECK(extent(s.in_d, s.pad_front + s.pad_back, s.kernel_d, s.dilation_d, s.stride_d) == s.out_d,
                 "out_d {} for in_d {}", s.out_d, s.in_d);
  LOCKSTEP_CHECK(extent(s.in_h, s.pad_top + s.pad_bottom, s.kernel_h, s.dilation_h, s.stride_h) == s.out_h,
                 "out_h {} for in_h {}", s.out_h, s.in_h);
  LOCKSTEP_CHECK(extent(s.in_w, s.pad_left + s.pad_right, s.kernel_w, s.dilation_w, s.stride_w) == s.out_w,
                 "out_w {} for in_w {}", s.out_w, s.in_w);
}

std::string describe(const ConvolutionSpec& s) {
  return fmt::format(
      "a {}x{}x{} convolution of {}x{}x{}x{}x{} to {} channels, stride {}x{}x{}, dilation {}x{}x{}, {} "
      "group(s)",
      s.kernel_d, s.kernel_h, s.kernel_w, s.n, s.in_d, s.in_h, s.in_w, s.in_c, s.out_c, s.stride_d,
      s.stride_h, s.stride_w, s.dilation_d, s.dilation_h, s.dilation_w, s.groups);
}

/// The descriptors for oneDNN, except for plain weights. They have two spatial axes if the convolution is
/// flat.
onednn::ConvolutionDescs descs_of(const ConvolutionSpec& s, Dims& kernel) {
  kernel = s.groups == 1 ? Dims{s.out_c, s.in_c} : Dims{s.groups, s.out_c / s.groups, s.in_c / s.groups};
  const Desc bias = s.bias ? onednn::f32({s.out_c}, Tag::x) : Desc();
  if (s.flat()) {
    kernel.insert(kernel.end(), {s.kernel_h, s.kernel_w});
    return {onednn::numbers(s.dtype, {s.n, s.in_c, s.in_h, s.in_w}, Tag::nhwc),
            onednn::numbers(s.dtype, kernel, Tag::any),
            bias,
            onednn::numbers(s.dtype, {s.n, s.out_c, s.out_h, s.out_w}, Tag::nhwc),
            {s.stride_h, s.stride_w},
            {s.dilation_h, s.dilation_w},
            {s.pad_top, s.pad_left},
            {s.pad_bottom, s.pad_right},
            s.training};
  }
  kernel.insert(kernel.end(), {s.kernel_d, s.kernel_h, s.kernel_w});
  return {onednn::numbers(s.dtype, {s.n, s.in_c, s.in_d, s.in_h, s.in_w}, Tag::ndhwc),
          onednn::numbers(s.dtype, kernel, Tag::any),
          bias,
          onednn::numbers(s.dtype, {s.n, s.out_c, s.out_d, s.out_h, s.out_w}, Tag::ndhwc),
          {s.stride_d, s.stride_h, s.stride_w},
          {s.dilation_d, s.dilation_h, s.dilation_w},
          {s.pad_front, s.pad_top, s.pad_left},
          {s.pad_back, s.pad_bottom, s.pad_right},
          s.training};
}

Tag plain_tag(const ConvolutionSpec& s) {
  if (s.flat()) return s.groups == 1 ? Tag::hwio : Tag::hwigo;
  return s.groups == 1 ? Tag::dhwio : Tag::dhwigo;
}

class CpuConvolution final : public LinearPrimitive {
 public:
  CpuConvolution(const ConvolutionSpec& spec, int lanes) : spec_(spec) {
    require_valid(spec);
    onednn::create(describe(spec), [&] {
      build(lanes);
      return 0;
    });
  }

  std::size_t scratch_bytes() const override { return scratch_bytes_; }
  std::size_t packed_bytes() const override { return backward_offset_ + backward_packed_bytes_; }

  bool same_packing(const LinearPrimitive& other) const override {
    const auto* o = dynamic_cast<const CpuConvolution*>(&other);
    return o != nullptr && plain_ == o->plain_ && forward_weights_ == o->forward_weights_ &&
           spec_.training == o->spec_.training && backward_weights_in_ == o->backward_weights_in_;
  }

  void pack(const Lane& lane, const float* weights, void* packed) const override {
    if (pack_forward_) pack_forward_->run(lane, {weights, packed, lane.scratch});
    if (pack_backward_) pack_backward_->run(lane, {weights, backward_part(packed), lane.scratch});
  }

  void forward(const Lane& lane, ConstData x, const float* weights, const void* packed, const float* bias,
               Data y) const override {
    require_scratch(lane);
    const void* w = pack_forward_ ? packed : weights;
    const void* from = address_in(spec_.dtype, x);
    void* to = address_in(spec_.dtype, y);
    if (spec_.bias)
      forward_.run(lane, {from, w, to, lane.scratch, bias});
    else
      forward_.run(lane, {from, w, to, lane.scratch});
    // Not a oneDNN post-op: that turns NaN into 0, which would hide broken weights.
    if (spec_.relu) cpu_kernels().elementwise.relu(lane, spec_.n * spec_.out_positions() * spec_.out_c, y, y);
  }

  void backward_data(const Lane& lane, ConstData dy, const float* weights, const void* packed,
                     Data dx) const override {
    LOCKSTEP_CHECK(spec_.training, "backward pass of a primitive made without training");
    require_scratch(lane);
    const void* w = weights;
    if (pack_backward_) w = static_cast<const char*>(packed) + backward_offset_;
    backward_data_.run(lane, {address_in(spec_.dtype, dy), w, address_in(spec_.dtype, dx), lane.scratch});
  }

  void backward_weights(const Lane& lane, ConstData x, ConstData dy, float* dweights) const override {
    LOCKSTEP_CHECK(spec_.training, "backward pass of a primitive made without training");
    require_scratch(lane);
    const void *from = address_in(spec_.dtype, x), *gradient = address_in(spec_.dtype, dy);
    if (!unpack_gradient_) {
      backward_weights_.run(lane, {from, gradient, dweights, lane.scratch});
      return;
    }
    char* rest = static_cast<char*>(lane.scratch) + gradient_bytes_;
    backward_weights_.run(lane, {from, gradient, lane.scratch, rest});
    unpack_gradient_->run(lane, {lane.scratch, dweights, rest});
  }

  double flops() const override {
    return 2.0 * static_cast<double>(spec_.n * spec_.out_positions() * spec_.out_c) *
           static_cast<double>(spec_.kernel_rows());
  }

 private:
  void build(int lanes) {
    const ConvolutionSpec& s = spec_;
    Dims kernel;
    const onednn::ConvolutionDescs descs = descs_of(s, kernel);
    plain_ = onednn::f32(kernel, plain_tag(s));

    const auto forward = onednn::convolution_forward(descs, onednn::attributes());
    forward_weights_ = forward.weights_desc();
    std::vector<Execution::Argument> arguments{{DNNL_ARG_SRC, descs.x},
                                               {DNNL_ARG_WEIGHTS, forward_weights_},
                                               {DNNL_ARG_DST, descs.y},
                                               {DNNL_ARG_SCRATCHPAD, forward.scratchpad_desc()}};
    if (s.bias) arguments.push_back({DNNL_ARG_BIAS, descs.bias});
    forward_ = Execution(dnnl::convolution_forward(forward), "convolution forward", arguments, lanes);
    need_scratch(forward.scratchpad_desc().get_size());
    if (forward_weights_ != plain_) {
      pack_forward_ = reorder(plain_, forward_weights_, 0, lanes);
      backward_offset_ = aligned(forward_weights_.get_size());
    }
    if (s.training) build_backward(descs, kernel, forward, lanes);
  }

  void build_backward(onednn::ConvolutionDescs descs, const Dims& kernel,
                      const dnnl::convolution_forward::primitive_desc& hint, int lanes) {
    descs.bias = Desc();
    const auto data = onednn::convolution_backward_data(descs, onednn::attributes(), hint);
    backward_weights_in_ = data.weights_desc();
    backward_data_ = Execution(dnnl::convolution_backward_data(data), "convolution backward data",
                               {{DNNL_ARG_DIFF_DST, descs.y},
                                {DNNL_ARG_WEIGHTS, backward_weights_in_},
                                {DNNL_ARG_DIFF_SRC, descs.x},
                                {DNNL_ARG_SCRATCHPAD, data.scratchpad_desc()}},
                               lanes);
    need_scratch(data.scratchpad_desc().get_size());
    if (backward_weights_in_ != plain_) {
      pack_backward_ = reorder(plain_, backward_weights_in_, 0, lanes);
      backward_packed_bytes_ = aligned(backward_weights_in_.get_size());
    }

    descs.weights = onednn::f32(kernel, Tag::any);  // from here on their gradient
    const auto weights = onednn::convolution_backward_weights(descs, onednn::attributes(), hint);
    const Desc gradient = weights.diff_weights_desc();
    backward_weights_ = Execution(dnnl::convolution_backward_weights(weights), "convolution backward weights",
                                  {{DNNL_ARG_SRC, descs.x},
                                   {DNNL_ARG_DIFF_DST, descs.y},
                                   {DNNL_ARG_DIFF_WEIGHTS, gradient},
                                   {DNNL_ARG_SCRATCHPAD, weights.scratchpad_desc()}},
                                  lanes);
    if (gradient != plain_) {
      gradient_bytes_ = aligned(gradient.get_size());
      unpack_gradient_ = reorder(gradient, plain_, gradient_bytes_, lanes);
    }
    need_scratch(gradient_bytes_ + weights.scratchpad_desc().get_size());
  }

  Execution reorder(const Desc& from, const Desc& to, std::size_t scratch_before, int lanes) {
    const dnnl::reorder::primitive_desc desc(onednn::engine(), from, onednn::engine(), to,
                                             onednn::attributes());
    need_scratch(scratch_before + desc.scratchpad_desc().get_size());
    return {dnnl::reorder(desc),
            "reorder of convolution weights",
            {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}, {DNNL_ARG_SCRATCHPAD, desc.scratchpad_desc()}},
            lanes};
  }

  void need_scratch(std::size_t bytes) { scratch_bytes_ = std::max(scratch_bytes_, bytes); }
  void require_scratch(const Lane& lane) const {
    LOCKSTEP_CHECK(lane.scratch_bytes >= scratch_bytes_, "lane {} has {} bytes of scratch, needs {}",
                   lane.index, lane.scratch_bytes, scratch_bytes_);
  }
  void* backward_part(void* packed) const { return static_cast<char*>(packed) + backward_offset_; }

  ConvolutionSpec spec_;
  Desc plain_, forward_weights_, backward_weights_in_;
  Execution forward_, backward_data_, backward_weights_;
  std::optional<Execution> pack_forward_, pack_backward_, unpack_gradient_;
  std::size_t scratch_bytes_ = 0, backward_offset_ = 0, backward_packed_bytes_ = 0, gradient_bytes_ = 0;
};

/// One axis of a window, to decide whether oneDNN's bfloat16 kernels are correct for it.
struct WindowAxis {
  std::int64_t in, out, kernel, stride, dilation, before, after;
  /// True if each margin is at most half of the window and each of the window's elements overlaps the input.
  bool plain() const {
    const std::int64_t span = (kernel - 1) * dilation + 1;
    if (in < span || before > span / 2 || after > span / 2) return false;
    for (std::int64_t k = 0; k < kernel; ++k) {
      bool met = false;
      for (std::int64_t o = 0; o < out && !met; ++o) {
        const std::int64_t at = o * stride - before + k * dilation;
        met = at >= 0 && at < in;
      }
      if (!met) return false;
    }
    return true;
  }
};

// Excludes shapes for which oneDNN 2.6.3's bfloat16 convolutions write outside their memory, leave parts of
// the weight gradient unwritten, or read one number past the end. About one in a hundred random small shapes
// is affected, mostly volumes and channel counts that are not multiples of 16. None of 3,000 random shapes
// within these limits was (tests/unit/kernels/linear_half_test.cpp checks some hundreds).
bool right_in_bfloat16(const ConvolutionSpec& s) {
  constexpr std::int64_t kChannels = 16;
  return s.flat() && s.groups == 1 && s.in_c % kChannels == 0 && s.out_c % kChannels == 0 &&
         WindowAxis{s.in_h, s.out_h, s.kernel_h, s.stride_h, s.dilation_h, s.pad_top, s.pad_bottom}.plain() &&
         WindowAxis{s.in_w, s.out_w, s.kernel_w, s.stride_w, s.dilation_w, s.pad_left, s.pad_right}.plain();
}

}  // namespace

std::unique_ptr<LinearPrimitive> make_cpu_convolution(const ConvolutionSpec& spec, int lanes) {
  std::string why_not = onednn::why_not_multiplied(spec.dtype);
  if (why_not.empty() && !right_in_bfloat16(spec))
    why_not = "oneDNN's bfloat16 convolution is unreliable for this shape";
  return make_in_its_type<CpuConvolution>(cpu_kernels().elementwise, why_not, spec, lanes);
}

}  // namespace lockstep
