// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Convolution on a GPU: cuDNN on channels-last activations, with plans of deterministic engines
// (cudnn_cuda.h). Our weights are kernel x in x out, cuDNN's are out x kernel x in: pack() transposes them
// once per step, and the weight gradient is transposed back.
//
// If the padding differs between the sides ("same" with stride 2), the input is copied into a padded one in
// scratch, since cuDNN guarantees engines only for symmetric padding.
//
// In 16-bit types x, y and the packed weights have that type, and sums are float32. The weight gradient has
// that type too, since cuDNN 9.19 has no engine with a float32 weight gradient on A100, H200 or B200. It is
// rounded there and widened while it is transposed. y is rounded, and rounded again after bias and relu. If a
// pass has no engine, the float32 convolution runs on widened numbers (widened_linear.h).
#include <algorithm>

#include "core/error.h"
#include "kernels/cuda_launch.h"
#include "kernels/cudnn_cuda.h"
#include "kernels/factory_cuda.h"
#include "kernels/linear_cuda.h"
#include "kernels/widened_linear.h"

namespace lockstep::cuda {
namespace {

constexpr std::size_t kAlignment = 256;
std::size_t aligned(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

class CudaConvolution final : public LinearPrimitive {
 public:
  CudaConvolution(const ConvolutionSpec& spec, const CudaOptions& options)
      : s_(spec),
        padded_(spec.pad_front != spec.pad_back || spec.pad_top != spec.pad_bottom ||
                spec.pad_left != spec.pad_right) {
    LOCKSTEP_CHECK(s_.n > 0 && s_.in_positions() > 0 && s_.in_c > 0 && s_.out_c > 0,
                   "n {} in {}x{}x{}x{} out_c {}", s_.n, s_.in_d, s_.in_h, s_.in_w, s_.in_c, s_.out_c);
    LOCKSTEP_CHECK(s_.groups > 0 && s_.in_c % s_.groups == 0 && s_.out_c % s_.groups == 0,
                   "{} groups of {} and {} channels", s_.groups, s_.in_c, s_.out_c);
    forward_ = plan(PlanSpec::Pass::forward, options);
    if (!s_.training) return;
    backward_data_ = plan(PlanSpec::Pass::backward_data, options);
    backward_weights_ = plan(PlanSpec::Pass::backward_weights, options);
  }

  std::size_t scratch_bytes() const override {
    std::size_t workspace = forward_->workspace_bytes(), gradient = 0;
    if (s_.training) {
      workspace = std::max(workspace, backward_data_->workspace_bytes());
      workspace = std::max(workspace, backward_weights_->workspace_bytes());
      gradient = aligned(weights_bytes(s_.dtype));
    }
    return kAlignment + aligned(padded_bytes()) + gradient + workspace;
  }
  std::size_t packed_bytes() const override { return weights_bytes(s_.dtype); }
  bool same_packing(const LinearPrimitive& other) const override {
    const auto* o = dynamic_cast<const CudaConvolution*>(&other);
    return o != nullptr && o->rows() == rows() && o->s_.out_c == s_.out_c && o->s_.dtype == s_.dtype;
  }
  void pack(const Lane& lane, const float* weights, void* packed) const override {
    transpose(lane, rows(), s_.out_c, weights, {packed, s_.dtype});
  }

  void forward(const Lane& lane, ConstData x, const float*, const void* packed, const float* bias,
               Data y) const override {
    const Scratch scratch = cut(lane);
    forward_->run(stream_of(lane), padded(lane, scratch, x), packed, address_in(s_.dtype, y),
                  scratch.workspace);
    add_bias(lane, s_.n * s_.out_positions(), s_.out_c, s_.bias ? bias : nullptr, s_.relu, y);
  }

  void backward_data(const Lane& lane, ConstData dy, const float*, const void* packed,
                     Data dx) const override {
    LOCKSTEP_CHECK(s_.training, "backward pass of a primitive made without training");
    const Scratch scratch = cut(lane);
    void* to = address_in(s_.dtype, dx);
    backward_data_->run(stream_of(lane), padded_ ? scratch.padded.address() : to, packed,
                        address_in(s_.dtype, dy), scratch.workspace);
    if (padded_) spatial_kernels().crop(lane, margins(), scratch.padded, dx);
  }

  void backward_weights(const Lane& lane, ConstData x, ConstData dy, float* dweights) const override {
    LOCKSTEP_CHECK(s_.training, "backward pass of a primitive made without training");
    const Scratch scratch = cut(lane);
    backward_weights_->run(stream_of(lane), padded(lane, scratch, x), scratch.gradient.address(),
                           address_in(s_.dtype, dy), scratch.workspace);
    transpose(lane, s_.out_c, rows(), scratch.gradient, dweights);
  }

  double flops() const override {
    return 2.0 * static_cast<double>(s_.n * s_.out_positions() * s_.out_c) * static_cast<double>(rows());
  }

 private:
  struct Scratch {
    Data padded, gradient;
    void* workspace;
  };

  /// Rows of the weights seen as a matrix rows x out_c.
  std::int64_t rows() const { return s_.kernel_rows(); }
  std::size_t weights_bytes(DType type) const {
    return static_cast<std::size_t>(rows() * s_.out_c) * size_in_bytes(type);
  }
  std::size_t padded_bytes() const {
    if (!padded_) return 0;
    const PlanSpec::Axes in = padded_in();
    return static_cast<std::size_t>(s_.n * in[0] * in[1] * in[2] * s_.in_c) * size_in_bytes(s_.dtype);
  }
  PlanSpec::Axes padded_in() const {
    return {s_.in_d + s_.pad_front + s_.pad_back, s_.in_h + s_.pad_top + s_.pad_bottom,
            s_.in_w + s_.pad_left + s_.pad_right};
  }
  MarginSpec margins() const {
    return {.n = s_.n,
            .inner = {s_.in_d, s_.in_h, s_.in_w},
            .channels = s_.in_c,
            .before = {s_.pad_front, s_.pad_top, s_.pad_left},
            .after = {s_.pad_back, s_.pad_bottom, s_.pad_right}};
  }

  std::shared_ptr<const Plan> plan(PlanSpec::Pass pass, const CudaOptions& options) const {
    PlanSpec p;
    p.pass = pass;
    p.spatial_axes = s_.flat() ? 2 : 3;
    p.n = s_.n, p.in_c = s_.in_c, p.out_c = s_.out_c, p.groups = s_.groups;
    p.in = padded_ ? padded_in() : PlanSpec::Axes{s_.in_d, s_.in_h, s_.in_w};
    p.out = {s_.out_d, s_.out_h, s_.out_w};
    if (!padded_) p.padding = {s_.pad_front, s_.pad_top, s_.pad_left};
    p.kernel = {s_.kernel_d, s_.kernel_h, s_.kernel_w};
    p.stride = {s_.stride_d, s_.stride_h, s_.stride_w};
    p.dilation = {s_.dilation_d, s_.dilation_h, s_.dilation_w};
    p.tf32 = options.allow_tf32 && s_.dtype == DType::f32;
    p.type = s_.dtype;
    return plan_for(p);
  }

  Scratch cut(const Lane& lane) const {
    LOCKSTEP_CHECK(lane.scratch_bytes >= scratch_bytes(), "lane {} has {} bytes of scratch, needs {}",
                   lane.index, lane.scratch_bytes, scratch_bytes());
    char* begin = reinterpret_cast<char*>(aligned(reinterpret_cast<std::size_t>(lane.scratch)));
    char* gradient = begin + aligned(padded_bytes());
    char* workspace = gradient + (s_.training ? aligned(weights_bytes(s_.dtype)) : 0);
    return {{begin, s_.dtype}, {gradient, s_.dtype}, workspace};
  }
  /// The address of x, or of its padded copy if the padding is asymmetric.
  const void* padded(const Lane& lane, const Scratch& scratch, ConstData x) const {
    const void* from = address_in(s_.dtype, x);
    if (!padded_) return from;
    spatial_kernels().pad(lane, margins(), x, 0.0F, scratch.padded);
    return scratch.padded.address();
  }

  ConvolutionSpec s_;
  bool padded_;
  std::shared_ptr<const Plan> forward_, backward_data_, backward_weights_;
};

}  // namespace

std::unique_ptr<LinearPrimitive> make_convolution(const ConvolutionSpec& spec, const CudaOptions& options) {
  return make_in_its_type<CudaConvolution>(elementwise_kernels(), "", spec, options);
}

}  // namespace lockstep::cuda
