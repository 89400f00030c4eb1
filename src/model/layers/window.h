// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Windows that slide over H x W: the arithmetic of padding, for convolution and pooling.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "core/params.h"

namespace lockstep {

/// One axis. out = floor((in + before + after - dilation * (window - 1) - 1) / stride) + 1.
struct WindowAxis {
  std::int64_t in = 0, out = 0, window = 1, stride = 1, dilation = 1, before = 0, after = 0;
};

/// Height and width from the options `padding` (same, valid or [top, bottom, left, right]), window, stride,
/// dilation (one number or two). `same` gives out = ceil(in / stride), the odd padding element at the end.
std::array<WindowAxis, 2> window_axes(std::int64_t height, std::int64_t width,
                                      std::array<std::int64_t, 2> window, std::array<std::int64_t, 2> stride,
                                      std::array<std::int64_t, 2> dilation, const Node& padding,
                                      const std::string& layer);

/// One number for both axes, or two: {height, width}. All must be at least 1.
std::array<std::int64_t, 2> pair_option(const Params& params, std::string_view name);

}  // namespace lockstep
