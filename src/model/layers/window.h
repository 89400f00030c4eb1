// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The arithmetic of windows over one, two or three spatial axes, with padding, for convolution and pooling.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/params.h"
#include "core/shape.h"

namespace lockstep {

/// One axis. out = floor((in + before + after - dilation * (window - 1) - 1) / stride) + 1.
struct WindowAxis {
  std::int64_t in = 1, out = 1, window = 1, stride = 1, dilation = 1, before = 0, after = 0;
};

/// Depth, height, width. Leading axes that a layer does not have are one element long.
using WindowAxes = std::array<WindowAxis, 3>;
using Extents = std::array<std::int64_t, 3>;

/// A layer's options for windows. Each list has a number per axis, or one number for all axes.
struct WindowOptions {
  std::vector<std::int64_t> window = {1}, stride = {1}, dilation = {1};
  Node padding;                            ///< same, valid or a list: before and after of each axis
  std::vector<std::string> circular = {};  ///< names of axes (circular_axes())
};

/// Computes the axes of an input with 1, 2 or 3 spatial axes and channels. `same` gives out = ceil(in /
/// stride), with the odd padding element at the end. Throws Error(config) that names the layer.
WindowAxes window_axes(const Shape& input, const WindowOptions& options, const std::string& layer);

/// The axes of a transposed convolution, which is the data gradient of a convolution. The result describes
/// that convolution, so `input` has its out. in = stride * (out - 1) + dilation * (window - 1) + 1 - before -
/// after + output_padding; `same` gives in = stride * out, padded as that convolution is.
WindowAxes transposed_window_axes(const Shape& input, const WindowOptions& options,
                                  const std::vector<std::int64_t>& output_padding, const std::string& layer);

/// Reads an option of one number, or one per axis, each at least `least`. `axes` is the number of axes of the
/// layer; 0: one to three, not known yet.
std::vector<std::int64_t> axes_option(const Params& params, std::string_view name, int axes,
                                      std::int64_t least = 1);
/// The same for option_as().
template <int kAxes, std::int64_t kLeast = 1>
std::vector<std::int64_t> axes_as(const Params& params, const ParamSpec& option) {
  return axes_option(params, option.name, kAxes, kLeast);
}
/// Such a list as depth, height, width. Leading axes that do not exist get `missing`. Throws Error(config) if
/// the list does not fit `axes`.
Extents per_axis(const std::vector<std::int64_t>& values, int axes, std::int64_t missing,
                 const std::string& layer, std::string_view option);

/// Elements before and after each axis (depth, height, width).
struct Margins {
  Extents before{}, after{};
};
/// Reads margins from a list of two numbers for each of the `axes`, each at most `most`.
Margins margins(const Node& list, int axes, const std::string& layer, std::string_view option,
                std::int64_t most);

/// Returns the number of spatial axes of the only input, which must be `least` to `most`. Throws
/// Error(config) that states what `kind` takes.
int spatial_axes(std::span<const Shape> inputs, int least, int most, const char* kind,
                 const std::string& layer);
/// The shape of a sample: `extents` of the last `axes` axes, then channels.
Shape spatial_shape(const Extents& extents, int axes, std::int64_t channels);
/// Depth, height and width of a sample.
Extents spatial_extents(const Shape& sample);

/// Which of the axes (depth, height, width) are named: steps, height, width, depth, or all. Throws
/// Error(config) that says which axes a layer with `axes` of them has.
std::array<bool, 3> circular_axes(const std::vector<std::string>& names, int axes, const std::string& layer);

/// Names for messages: "steps" or "[height, width]"; "[before, after]" or "[top, bottom, left, right]".
const char* axis_names(int axes);
const char* margin_names(int axes);

}  // namespace lockstep
