// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What convolutions and transposed convolutions share: their options, and the primitive's shape.
#pragma once

#include "model/layers/linear.h"
#include "model/layers/window.h"

namespace lockstep {

/// A layer of kernel, bias, fused relu and windows over `axes` spatial axes.
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
  /// Checks the input, and that channels and filters are multiples of the groups. Returns its channels.
  std::int64_t check_input(std::span<const Shape> inputs) const;
  /// Geometry, groups, training, type; channels, n, bias and relu are the caller's.
  ConvolutionSpec spec_of(const WindowAxes& axes, const PrepareContext& context) const;
  /// kernel x `in` x `out`.
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
