// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The base class of convolutions and transposed convolutions: options, and the shape of the primitive.
#pragma once

#include "config/option.h"
#include "model/layers/linear.h"
#include "model/layers/window.h"

namespace lockstep {

struct ConvolutionOptions {
  std::int64_t filters = 0, groups = 1;
  WindowOptions windows;
  std::vector<std::int64_t> output_padding;  ///< of transposed convolutions
  bool bias = true;
  Node kernel_initializer, bias_initializer;
};
/// Options of all convolutions over `kAxes` axes.
template <int kAxes>
constexpr ParamSpec kernel_option(std::string_view help) {
  return option_as<axes_as<kAxes>, &ConvolutionOptions::windows, &WindowOptions::window>(
      ParamType::integers, "kernel", kRequired, between(1, 65536), help);
}
template <int kAxes>
constexpr ParamSpec stride_option(std::string_view help) {
  return option_as<axes_as<kAxes>, &ConvolutionOptions::windows, &WindowOptions::stride>(
      ParamType::integers, "stride", "1", between(1, 65536), help);
}
template <int kAxes>
constexpr ParamSpec dilation_option() {
  return option_as<axes_as<kAxes>, &ConvolutionOptions::windows, &WindowOptions::dilation>(
      ParamType::integers, "dilation", "1", between(1, 65536), "distance between the window's elements");
}
constexpr ParamSpec filters_option() {
  return option<&ConvolutionOptions::filters>("filters", kRequired, between(1, 16777216),
                                              "number of output channels");
}
constexpr ParamSpec padding_option(std::string_view help) {
  return option<&ConvolutionOptions::windows, &WindowOptions::padding>("padding", "same", {}, help);
}
/// Of convolutions that are not transposed.
constexpr ParamSpec circular_option() {
  return option<&ConvolutionOptions::windows, &WindowOptions::circular>("circular", "[]", {}, kCircularHelp);
}
constexpr ParamSpec groups_option(std::string_view help) {
  return option<&ConvolutionOptions::groups>("groups", "1", between(1, 16777216), help);
}
constexpr ParamSpec bias_option() {
  return option<&ConvolutionOptions::bias>("bias", "true", {}, "add a bias; not needed before a batch_norm");
}
constexpr ParamSpec kernel_initializer_option(std::string_view help) {
  return option<&ConvolutionOptions::kernel_initializer>("kernel_initializer", "he_normal", {}, help);
}
constexpr ParamSpec bias_initializer_option() {
  return option<&ConvolutionOptions::bias_initializer>("bias_initializer", "zeros", {}, "initial bias");
}

/// A linear layer with windows over `axes` spatial axes.
class ConvolutionLayer : public LinearLayer {
 public:
  ConvolutionLayer(std::string name, const char* kind, const ConvolutionOptions& o, int axes)
      : LinearLayer(std::move(name), o.bias, make_initializer(o.kernel_initializer),
                    make_initializer(o.bias_initializer)),
        kind_(kind),
        axes_count_(axes),
        filters_(o.filters),
        groups_(o.groups),
        windows_(o.windows) {}

  LayerTraits traits() const final { return linear_traits(kind_, flops_); }

 protected:
  /// Checks that the input fits and that channels and filters are multiples of the groups. Returns the
  /// input's channels.
  std::int64_t check_input(std::span<const Shape> inputs) const;
  /// Sets geometry, groups, training and type. The caller sets channels, n, bias and relu.
  ConvolutionSpec spec_of(const WindowAxes& axes, const PrepareContext& context) const;
  /// The shape window x `in` x `out`.
  Shape kernel_of(std::int64_t in, std::int64_t out) const;
  const Shape& output_shape() const final { return output_; }

  const char* kind_;
  int axes_count_;
  std::int64_t filters_, groups_, in_channels_ = 0;
  WindowOptions windows_;
  WindowAxes axes_;
  Shape output_;
  double flops_ = 0;  ///< per sample
};

}  // namespace lockstep
