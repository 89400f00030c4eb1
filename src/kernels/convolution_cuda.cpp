// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Convolution on a GPU: cuDNN on channels-last activations, with plans of deterministic engines
// (cudnn_cuda.h). Our weights are kernel x in x out, cuDNN's are out x kernel x in: pack() transposes them
// once per step, and the weight gradient is transposed back.
//
// If the padding differs between the sides ("same" with stride 2), cuDNN may have no engine, or none on
// tensor cores in 16 bits. For such a pass, the input is copied into a padded one in scratch. So it is for
// the float32 gradient of the weights, since cuDNN 9.19 computed wrong ones on an H100, without an error: in
// two tests, which by the plans for an H200 are those with engine 1 and padding that differs along one axis
// only.
//
// In 16-bit types x, y and the packed weights have that type, and sums are float32. The weight gradient has
// that type too, since cuDNN 9.19 has no engine with a float32 weight gradient on A100, H200 or B200. It is
// rounded there and widened while it is transposed. y is rounded, and rounded again after bias and relu. If a
// pass has no engine, the float32 convolution runs on widened numbers (widened_linear.h).
#include <algorithm>
#include <utility>

#include "core/error.h"
#include "kernels/cuda_launch.h"
#include "kernels/cudnn_cuda.h"
#include "kernels/factory_cuda.h"
#include "kernels/linear_cuda.h"
#include "kernels/not_supported.h"
#include "kernels/widened_linear.h"

namespace lockstep::cuda {
namespace {

constexpr std::size_t kAlignment = 256;
std::size_t aligned(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

class CudaConvolution final : public LinearPrimitive {
 public:
  CudaConvolution(const ConvolutionSpec& spec, const CudaOptions& options)
      : s_(spec),
        before_{spec.pad_front, spec.pad_top, spec.pad_left},
        after_{spec.pad_back, spec.pad_bottom, spec.pad_right} {
    LOCKSTEP_CHECK(s_.n > 0 && s_.in_positions() > 0 && s_.in_c > 0 && s_.out_c > 0,
                   "n {} in {}x{}x{}x{} out_c {}", s_.n, s_.in_d, s_.in_h, s_.in_w, s_.in_c, s_.out_c);
    LOCKSTEP_CHECK(s_.groups > 0 && s_.in_c % s_.groups == 0 && s_.out_c % s_.groups == 0,
                   "{} groups of {} and {} channels", s_.groups, s_.in_c, s_.out_c);
    forward_ = pass_of(PlanSpec::Pass::forward, options);
    if (!s_.training) return;
    backward_data_ = pass_of(PlanSpec::Pass::backward_data, options);
    backward_weights_ = pass_of(PlanSpec::Pass::backward_weights, options);
  }

  std::size_t scratch_bytes() const override {
    std::size_t workspace = forward_.plan->workspace_bytes(), gradient = 0;
    if (s_.training) {
      workspace = std::max(workspace, backward_data_.plan->workspace_bytes());
      workspace = std::max(workspace, backward_weights_.plan->workspace_bytes());
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
    forward_.plan->run(stream_of(lane), padded(forward_, lane, scratch, x), packed, address_in(s_.dtype, y),
                       scratch.workspace);
    add_bias(lane, s_.n * s_.out_positions(), s_.out_c, s_.bias ? bias : nullptr, s_.relu, y);
  }

  void backward_data(const Lane& lane, ConstData dy, const float*, const void* packed,
                     Data dx) const override {
    LOCKSTEP_CHECK(s_.training, "backward pass of a primitive made without training");
    const Scratch scratch = cut(lane);
    void* to = address_in(s_.dtype, dx);
    backward_data_.plan->run(stream_of(lane), backward_data_.pads ? scratch.padded.address() : to, packed,
                             address_in(s_.dtype, dy), scratch.workspace);
    if (backward_data_.pads) spatial_kernels().crop(lane, margins(), scratch.padded, dx);
  }

  void backward_weights(const Lane& lane, ConstData x, ConstData dy, float* dweights) const override {
    LOCKSTEP_CHECK(s_.training, "backward pass of a primitive made without training");
    const Scratch scratch = cut(lane);
    backward_weights_.plan->run(stream_of(lane), padded(backward_weights_, lane, scratch, x),
                                scratch.gradient.address(), address_in(s_.dtype, dy), scratch.workspace);
    transpose(lane, s_.out_c, rows(), scratch.gradient, dweights);
  }

  double flops() const override {
    return 2.0 * static_cast<double>(s_.n * s_.out_positions() * s_.out_c) * static_cast<double>(rows());
  }

 private:
  struct Pass {
    std::shared_ptr<const Plan> plan;
    bool pads = false;  ///< x is a padded copy
  };
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
    if (!forward_.pads && !backward_data_.pads && !backward_weights_.pads) return 0;
    const PlanSpec::Axes in = padded_in();
    return static_cast<std::size_t>(s_.n * in[0] * in[1] * in[2] * s_.in_c) * size_in_bytes(s_.dtype);
  }
  PlanSpec::Axes padded_in() const {
    return {s_.in_d + before_[0] + after_[0], s_.in_h + before_[1] + after_[1],
            s_.in_w + before_[2] + after_[2]};
  }
  MarginSpec margins() const {
    return {.n = s_.n,
            .inner = {s_.in_d, s_.in_h, s_.in_w},
            .channels = s_.in_c,
            .before = {before_[0], before_[1], before_[2]},
            .after = {after_[0], after_[1], after_[2]}};
  }

  /// With cuDNN's own margins if it has an engine for them that is right, and as good as one without. A GPU
  /// of the same kind and the same library decide alike.
  Pass pass_of(PlanSpec::Pass which, const CudaOptions& options) const {
    if (before_ == after_) return {plan_for(spec_of(which, options, false), options.check_plans), false};
    const bool may_be_wrong = which == PlanSpec::Pass::backward_weights && s_.dtype == DType::f32;
    if (!may_be_wrong) {
      try {
        std::shared_ptr<const Plan> plan = plan_for(spec_of(which, options, false), options.check_plans);
        if (s_.dtype == DType::f32 || plan->on_tensor_cores()) return {std::move(plan), false};
      } catch (const NotSupported&) {  // then with margins of zeros
      }
    }
    return {plan_for(spec_of(which, options, true), options.check_plans), true};
  }

  PlanSpec spec_of(PlanSpec::Pass pass, const CudaOptions& options, bool pads) const {
    PlanSpec p;
    p.pass = pass;
    p.spatial_axes = s_.flat() ? 2 : 3;
    p.n = s_.n, p.in_c = s_.in_c, p.out_c = s_.out_c, p.groups = s_.groups;
    p.in = pads ? padded_in() : PlanSpec::Axes{s_.in_d, s_.in_h, s_.in_w};
    p.out = {s_.out_d, s_.out_h, s_.out_w};
    if (!pads) p.padding = before_, p.padding_after = after_;
    p.kernel = {s_.kernel_d, s_.kernel_h, s_.kernel_w};
    p.stride = {s_.stride_d, s_.stride_h, s_.stride_w};
    p.dilation = {s_.dilation_d, s_.dilation_h, s_.dilation_w};
    p.tf32 = options.allow_tf32 && s_.dtype == DType::f32;
    p.type = s_.dtype;
    return p;
  }

  Scratch cut(const Lane& lane) const {
    LOCKSTEP_CHECK(lane.scratch_bytes >= scratch_bytes(), "lane {} has {} bytes of scratch, needs {}",
                   lane.index, lane.scratch_bytes, scratch_bytes());
    char* begin = reinterpret_cast<char*>(aligned(reinterpret_cast<std::size_t>(lane.scratch)));
    char* gradient = begin + aligned(padded_bytes());
    char* workspace = gradient + (s_.training ? aligned(weights_bytes(s_.dtype)) : 0);
    return {{begin, s_.dtype}, {gradient, s_.dtype}, workspace};
  }
  /// The address of x, or of its padded copy.
  const void* padded(const Pass& pass, const Lane& lane, const Scratch& scratch, ConstData x) const {
    const void* from = address_in(s_.dtype, x);
    if (!pass.pads) return from;
    spatial_kernels().pad(lane, margins(), x, 0.0F, scratch.padded);
    return scratch.padded.address();
  }

  ConvolutionSpec s_;
  PlanSpec::Axes before_, after_;  ///< padding
  Pass forward_, backward_data_, backward_weights_;
};

}  // namespace

std::unique_ptr<LinearPrimitive> make_convolution(const ConvolutionSpec& spec, const CudaOptions& options) {
  return make_in_its_type<CudaConvolution>(elementwise_kernels(), "", spec, options);
}

}  // namespace lockstep::cuda
