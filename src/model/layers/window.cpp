// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "model/layers/window.h"

#include <algorithm>
#include <charconv>

namespace lockstep {

namespace {

std::int64_t parsed(const Node& node) {
  std::int64_t value = -1;
  const char* end = node.text.data() + node.text.size();
  const auto result = std::from_chars(node.text.data(), end, value);
  if (node.kind != Node::Kind::scalar || result.ec != std::errc{} || result.ptr != end || value < 0)
    throw Error(ErrorKind::config, "padding must be whole numbers that are not negative", node.where);
  return value;
}

void place(WindowAxis& axis, const Node& padding, std::size_t first, const std::string& layer) {
  const std::int64_t reach = axis.dilation * (axis.window - 1) + 1;
  if (padding.kind == Node::Kind::list) {
    LOCKSTEP_REQUIRE(padding.items.size() == 4, ErrorKind::config,
                     "{}: layer {}: explicit padding is [top, bottom, left, right]", padding.where, layer);
    axis.before = parsed(padding.items[first]);
    axis.after = parsed(padding.items[first + 1]);
  } else if (padding.text == "same") {
    axis.out = (axis.in + axis.stride - 1) / axis.stride;
    const std::int64_t total = std::max<std::int64_t>(0, (axis.out - 1) * axis.stride + reach - axis.in);
    axis.before = total / 2;
    axis.after = total - total / 2;
    return;
  } else if (padding.text != "valid") {
    throw Error(ErrorKind::config, fmt::format("layer {}: unknown padding '{}'", layer, padding.text),
                padding.where, "Use same, valid or [top, bottom, left, right].");
  }
  const std::int64_t room = axis.in + axis.before + axis.after - reach;
  LOCKSTEP_REQUIRE(room >= 0, ErrorKind::config,
                   "layer {}: a window of {} does not fit into {} (with padding)", layer, reach,
                   axis.in + axis.before + axis.after);
  axis.out = room / axis.stride + 1;
}

}  // namespace

std::array<WindowAxis, 2> window_axes(std::int64_t height, std::int64_t width,
                                      std::array<std::int64_t, 2> window, std::array<std::int64_t, 2> stride,
                                      std::array<std::int64_t, 2> dilation, const Node& padding,
                                      const std::string& layer) {
  std::array<WindowAxis, 2> axes = {
      WindowAxis{.in = height, .window = window[0], .stride = stride[0], .dilation = dilation[0]},
      WindowAxis{.in = width, .window = window[1], .stride = stride[1], .dilation = dilation[1]}};
  place(axes[0], padding, 0, layer);
  place(axes[1], padding, 2, layer);
  return axes;
}

std::array<std::int64_t, 2> pair_option(const Params& params, std::string_view name) {
  const auto& values = params.integers(name);
  if (values.empty() || values.size() > 2 || *std::min_element(values.begin(), values.end()) < 1)
    throw params.error(name,
                       fmt::format("'{}' must be one number of at least 1, or two: [height, width]", name));
  return {values.front(), values.back()};
}

}  // namespace lockstep
