// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Windows that slide over one, two or three spatial axes: the arithmetic of padding, for convolution and
// pooling.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/params.h"
#include "core/shape.h"

namespace lockstep {

/// One axis. out = floor((in + before + after - dilation * (window - 1) - 1) / stride) + 1.
struct WindowAxis {
  std::int64_t in = 1, out = 1, window = 1, stride = 1, dilation = 1, before = 0, after = 0;
};

/// Depth, height, width; those in front that a layer does not have are of one element.
using WindowAxes = std::array<WindowAxis, 3>;
using Extents = std::array<std::int64_t, 3>;

/// What the layers' options say about windows: each list has a number per axis, or one number for all.
struct WindowOptions {
  std::vector<std::int64_t> window = {1}, stride = {1}, dilation = {1};
  Node padding;  ///< same, valid or a list: before and after of each axis
};

/// The axes of an input of 1, 2 or 3 spatial axes and channels. `same` gives out = ceil(in / stride), the odd
/// padding element at the end. Throws Error(config) that names the layer.
WindowAxes window_axes(const Shape& input, const WindowOptions& options, const std::string& layer);

/// The axes of the convolution whose data gradient a transposed convolution is: `input` has the convolution's
/// out. in = stride * (out - 1) + dilation * (window - 1) + 1 - before - after + output_padding; `same` gives
/// in = stride * out, padded as that convolution is.
WindowAxes transposed_window_axes(const Shape& input, const WindowOptions& options,
                                  const std::vector<std::int64_t>& output_padding, const std::string& layer);

/// An option of one number, or one per axis, each at least `least`. `axes`: of the layer; 0: only known
/// later, one to three.
std::vector<std::int64_t> axes_option(const Params& params, std::string_view name, int axes,
                                      std::int64_t least = 1);
/// Such a list as depth, height, width; axes in front that are not there have `missing`. Throws Error(config)
/// if it does not fit `axes`.
Extents per_axis(const std::vector<std::int64_t>& values, int axes, std::int64_t missing,
                 const std::string& layer, std::string_view option);

/// What lies before and after each axis (depth, height, width) by a list of 2 numbers for each of the `axes`.
struct Margins {
  Extents before{}, after{};
};
Margins margins(const Node& list, int axes, const std::string& layer, std::string_view option);

/// Spatial axes of a sample of space x channels, `least` to `most`; else Error(config) that says what `kind`
/// takes.
int spatial_axes(std::span<const Shape> inputs, int least, int most, const char* kind,
                 const std::string& layer);
/// A sample's shape: `extents` of its last `axes` axes, and channels.
Shape spatial_shape(const Extents& extents, int axes, std::int64_t channels);
/// Depth, height, width of a sample.
Extents spatial_extents(const Shape& sample);

/// "[height, width]", with brackets only for several axes; padding: "[top, bottom, left, right]".
const char* axis_names(int axes);
const char* margin_names(int axes);

}  // namespace lockstep
