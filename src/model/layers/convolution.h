// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The base class of convolutions and transposed convolutions: options, and the shape of the primitive.
#pragma once

#include "model/layers/linear.h"
#include "model/layers/window.h"

namespace lockstep {

/// A linear layer with windows over `axes` spatial axes.
class ConvolutionLayer : public LinearLayer {
 public:
  ConvolutionLayer(std::string name, const char* kind, const Params& p, int axes)
      : LinearLayer(std::move(name), p.boolean("bias"), make_initializer(p.node("kernel_initializer")),
                    make_initializer(p.node("bias_initializer"))),
        kind_(kind),
        axes_count_(axes),
        filters_(p.integer("filters")),
        groups_(p.integer("groups")),
        windows_{axes_option(p, "kernel", axes), axes_option(p, "stride", axes),
                 axes_option(p, "dilation", axes), p.node("padding")} {}

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
