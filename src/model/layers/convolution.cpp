// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// conv1d, conv2d and conv3d.
#include "model/layers/convolution.h"

#include <algorithm>

#include "model/layer_table.h"

namespace lockstep {

std::int64_t ConvolutionLayer::check_input(std::span<const Shape> inputs) const {
  spatial_axes(inputs, axes_count_, axes_count_, kind_, name());
  const std::int64_t channels = inputs[0].last();
  LOCKSTEP_REQUIRE(
      channels % groups_ == 0 && filters_ % groups_ == 0, ErrorKind::config,
      "layer {}: with {} groups, input channels ({}) and filters ({}) must both be multiples of the groups",
      name(), groups_, channels, filters_);
  return channels;
}

ConvolutionSpec ConvolutionLayer::spec_of(const WindowAxes& axes, const PrepareContext& context) const {
  const auto& [d, h, w] = axes;
  return {.in_d = d.in,
          .in_h = h.in,
          .in_w = w.in,
          .out_d = d.out,
          .out_h = h.out,
          .out_w = w.out,
          .kernel_d = d.window,
          .kernel_h = h.window,
          .kernel_w = w.window,
          .stride_d = d.stride,
          .stride_h = h.stride,
          .stride_w = w.stride,
          .dilation_d = d.dilation,
          .dilation_h = h.dilation,
          .dilation_w = w.dilation,
          .pad_front = d.before,
          .pad_back = d.after,
          .pad_top = h.before,
          .pad_bottom = h.after,
          .pad_left = w.before,
          .pad_right = w.after,
          .groups = groups_,
          .training = context.training,
          .dtype = context.type};
}

Shape ConvolutionLayer::kernel_of(std::int64_t in, std::int64_t out) const {
  const Extents window = per_axis(windows_.window, axes_count_, 1, name(), "kernel");
  std::array<std::int64_t, 5> extents{};
  std::copy(window.end() - axes_count_, window.end(), extents.begin());
  const auto rank = static_cast<std::size_t>(axes_count_);
  extents[rank] = in;
  extents[rank + 1] = out;
  return Shape(std::span<const std::int64_t>(extents.data(), rank + 2));
}

namespace {

// clang-format off: one table per number of axes, line by line the same
#define LOCKSTEP_CONVOLUTION_OPTIONS(axes, window, padding, layout)                          \
  filters_option(), kernel_option<axes>(window), stride_option<axes>("step of the window"),  \
      padding_option("same, valid or " padding), circular_option(), dilation_option<axes>(), \
      groups_option("channel groups; as many as input channels: depthwise"), bias_option(),  \
      kernel_initializer_option("initial kernel (" layout " x in / groups x filters)"),      \
      bias_initializer_option(),

constexpr ParamSpec kTable1[] = {
    LOCKSTEP_CONVOLUTION_OPTIONS(1, "window: one number", "[before, after]", "window")};
constexpr ParamSpec kTable2[] = {LOCKSTEP_CONVOLUTION_OPTIONS(
    2, "window: one number or [height, width]", "[top, bottom, left, right]", "height x width")};
constexpr ParamSpec kTable3[] = {
    LOCKSTEP_CONVOLUTION_OPTIONS(3, "window: one number or [depth, height, width]",
                                 "[front, back, top, bottom, left, right]", "depth x height x width")};
#undef LOCKSTEP_CONVOLUTION_OPTIONS
// clang-format on

/// Cross-correlation over space x channels; the kernel is window x (channels / groups) x filters.
class Convolution final : public ConvolutionLayer {
 public:
  using ConvolutionLayer::ConvolutionLayer;

  std::vector<Shape> infer(std::span<const Shape> inputs) override {
    in_channels_ = check_input(inputs);
    axes_ = window_axes(inputs[0], windows_, name());
    margins_.take(axes_, circular_axes(windows_.circular, axes_count_, name()), in_channels_, name());
    output_ = spatial_shape({axes_[0].out, axes_[1].out, axes_[2].out}, axes_count_, filters_);
    flops_ = 2.0 * static_cast<double>(output_.num_elements()) *
             static_cast<double>(kernel_shape().num_elements() / filters_);
    return {output_};
  }

 protected:
  Shape kernel_shape() const override { return kernel_of(in_channels_ / groups_, filters_); }
  std::unique_ptr<LinearPrimitive> make_primitive(const PrepareContext& context,
                                                  std::int64_t n) const override {
    ConvolutionSpec spec = spec_of(axes_, context);
    spec.n = n;
    spec.in_c = in_channels_;
    spec.out_c = filters_;
    spec.bias = bias_;
    spec.relu = relu_;
    return context.kernels.make.convolution(spec, context.lanes);
  }
};

constexpr const char* kKinds[] = {"conv1d", "conv2d", "conv3d"};

template <int kAxes>
std::unique_ptr<Layer> make(std::string name, const Params& p) {
  return std::make_unique<Convolution>(std::move(name), kKinds[kAxes - 1], p.as<ConvolutionOptions>(), kAxes);
}

}  // namespace

extern const LayerEntry kConv1dLayer = {"conv1d", "convolution over one axis, channels last", kTable1,
                                        make<1>};
extern const LayerEntry kConv2dLayer = {"conv2d", "two-dimensional convolution, channels last", kTable2,
                                        make<2>};
extern const LayerEntry kConv3dLayer = {"conv3d", "three-dimensional convolution, channels last", kTable3,
                                        make<3>};

}  // namespace lockstep
