// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "model/layers/entries.h"
#include "model/layers/linear.h"
#include "model/layers/window.h"

namespace lockstep {

namespace {

constexpr ParamSpec kTable[] = {
    {"filters", ParamType::integer, kRequired, ">= 1", "number of output channels"},
    {"kernel", ParamType::integers, kRequired, "", "window: one number or [height, width]"},
    {"stride", ParamType::integers, "1", "", "step of the window"},
    {"padding", ParamType::node, "same", "", "same, valid or [top, bottom, left, right]"},
    {"dilation", ParamType::integers, "1", "", "distance between the window's elements"},
    {"groups", ParamType::integer, "1", ">= 1", "channel groups; as many as input channels: depthwise"},
    {"bias", ParamType::boolean, "true", "", "add a bias; not needed before a batch_norm"},
    {"kernel_initializer", ParamType::node, "he_normal", "",
     "initial kernel (height x width x in / groups x filters)"},
    {"bias_initializer", ParamType::node, "zeros", "", "initial bias"},
};

/// Cross-correlation over N,H,W,C; the kernel is kernel_h x kernel_w x (C / groups) x filters.
class Conv2d final : public LinearLayer {
 public:
  Conv2d(std::string name, const Params& p)
      : LinearLayer(std::move(name), p.boolean("bias"), make_initializer(p.node("kernel_initializer")),
                    make_initializer(p.node("bias_initializer"))),
        filters_(p.integer("filters")),
        groups_(p.integer("groups")),
        kernel_(pair_option(p, "kernel")),
        stride_(pair_option(p, "stride")),
        dilation_(pair_option(p, "dilation")),
        padding_(p.node("padding")) {}

  const char* kind() const override { return "conv2d"; }

  std::vector<Shape> infer(std::span<const Shape> inputs) override {
    LOCKSTEP_REQUIRE(inputs.size() == 1 && inputs[0].rank() == 3, ErrorKind::config,
                     "layer {}: conv2d takes one input of height x width x channels per sample, not {}",
                     name(), inputs.empty() ? "nothing" : inputs[0].to_string());
    const Shape& in = inputs[0];
    LOCKSTEP_REQUIRE(
        in[2] % groups_ == 0 && filters_ % groups_ == 0, ErrorKind::config,
        "layer {}: with {} groups, input channels ({}) and filters ({}) must both be multiples of the groups",
        name(), groups_, in[2], filters_);
    axes_ = window_axes(in[0], in[1], kernel_, stride_, dilation_, padding_, name());
    in_channels_ = in[2];
    output_ = Shape{axes_[0].out, axes_[1].out, filters_};
    return {output_};
  }

  double flops_per_sample() const override {
    return 2.0 *
           static_cast<double>(output_.num_elements() * kernel_[0] * kernel_[1] * (in_channels_ / groups_));
  }

 protected:
  Shape kernel_shape() const override {
    return Shape{kernel_[0], kernel_[1], in_channels_ / groups_, filters_};
  }
  const Shape& output_shape() const override { return output_; }
  std::unique_ptr<LinearPrimitive> make_primitive(const PrepareContext& context,
                                                  std::int64_t n) const override {
    const auto& [h, w] = axes_;
    return context.kernels.make.convolution({.n = n,
                                             .in_h = h.in,
                                             .in_w = w.in,
                                             .in_c = in_channels_,
                                             .out_h = h.out,
                                             .out_w = w.out,
                                             .out_c = filters_,
                                             .kernel_h = h.window,
                                             .kernel_w = w.window,
                                             .stride_h = h.stride,
                                             .stride_w = w.stride,
                                             .dilation_h = h.dilation,
                                             .dilation_w = w.dilation,
                                             .pad_top = h.before,
                                             .pad_bottom = h.after,
                                             .pad_left = w.before,
                                             .pad_right = w.after,
                                             .groups = groups_,
                                             .bias = bias_,
                                             .relu = relu_,
                                             .training = context.training},
                                            context.lanes);
  }

 private:
  std::int64_t filters_, groups_, in_channels_ = 0;
  std::array<std::int64_t, 2> kernel_, stride_, dilation_;
  Node padding_;
  std::array<WindowAxis, 2> axes_;
  Shape output_;
};

}  // namespace

const LayerEntry kConv2dLayer = {"conv2d", "two-dimensional convolution, channels last", kTable,
                                 [](std::string name, const Params& p) -> std::unique_ptr<Layer> {
                                   return std::make_unique<Conv2d>(std::move(name), p);
                                 }};

}  // namespace lockstep
