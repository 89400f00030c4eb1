// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "model/layers/window.h"

#include <algorithm>
#include <charconv>

namespace lockstep {

namespace {

/// oneDNN's time to make a primitive, and the time of a step, grow with padding.
constexpr std::int64_t kMostPadding = 65536;

std::int64_t parsed(const Node& node, std::string_view option, std::int64_t most) {
  std::int64_t value = -1;
  const char* end = node.text.data() + node.text.size();
  const auto result = std::from_chars(node.text.data(), end, value);
  if (node.kind != Node::Kind::scalar || result.ec != std::errc{} || result.ptr != end || value < 0)
    throw Error(ErrorKind::config, fmt::format("{} must be whole numbers that are not negative", option),
                node.where);
  if (value > most)
    throw Error(ErrorKind::config, fmt::format("{} must be at most {}, but is {}", option, most, value),
                node.where);
  return value;
}

enum class Padding { same, valid, given };

/// Returns the kind of padding, and sets `before` and `after` of all axes if it is explicit.
Padding read_padding(WindowAxes& axes, const Node& padding, int count, const std::string& layer) {
  if (padding.kind == Node::Kind::list) {
    const Margins given = margins(padding, count, layer, "padding", kMostPadding);
    for (std::size_t i = 0; i < axes.size(); ++i) {
      axes[i].before = given.before[i];
      axes[i].after = given.after[i];
    }
    return Padding::given;
  }
  if (padding.text == "same") return Padding::same;
  if (padding.text != "valid")
    throw Error(ErrorKind::config, fmt::format("layer {}: unknown padding '{}'", layer, padding.text),
                padding.where,
                padding.text == "circular"
                    ? "Write padding: same, and with it circular: all, or the axes whose ends meet."
                    : fmt::format("Use same, valid or {}.", margin_names(count)));
  return Padding::valid;
}

/// The number of elements from the first to the last of a window.
std::int64_t reach(const WindowAxis& axis) { return axis.dilation * (axis.window - 1) + 1; }

void pad_same(WindowAxis& axis) {
  const std::int64_t total = std::max<std::int64_t>(0, (axis.out - 1) * axis.stride + reach(axis) - axis.in);
  axis.before = total / 2;
  axis.after = total - total / 2;
}

WindowAxes empty_axes(const Extents& extents, const WindowOptions& options, int count,
                      const std::string& layer) {
  const Extents window = per_axis(options.window, count, 1, layer, "window"),
                stride = per_axis(options.stride, count, 1, layer, "stride"),
                dilation = per_axis(options.dilation, count, 1, layer, "dilation");
  WindowAxes axes;
  for (std::size_t i = 0; i < axes.size(); ++i)
    axes[i] = {.in = extents[i], .window = window[i], .stride = stride[i], .dilation = dilation[i]};
  return axes;
}

}  // namespace

WindowAxes window_axes(const Shape& input, const WindowOptions& options, const std::string& layer) {
  const int count = input.rank() - 1;
  WindowAxes axes = empty_axes(spatial_extents(input), options, count, layer);
  const Padding padding = read_padding(axes, options.padding, count, layer);
  for (WindowAxis& axis : axes) {
    if (padding == Padding::same) {
      axis.out = (axis.in + axis.stride - 1) / axis.stride;
      pad_same(axis);
      continue;
    }
    const std::int64_t room = axis.in + axis.before + axis.after - reach(axis);
    LOCKSTEP_REQUIRE(room >= 0, ErrorKind::config,
                     "layer {}: a window of {} does not fit into {} (with padding)", layer, reach(axis),
                     axis.in + axis.before + axis.after);
    axis.out = room / axis.stride + 1;
  }
  return axes;
}

WindowAxes transposed_window_axes(const Shape& input, const WindowOptions& options,
                                  const std::vector<std::int64_t>& output_padding, const std::string& layer) {
  const int count = input.rank() - 1;
  WindowAxes axes = empty_axes(spatial_extents(input), options, count, layer);
  const Padding padding = read_padding(axes, options.padding, count, layer);
  const Extents more = per_axis(output_padding, count, 0, layer, "output_padding");
  for (std::size_t i = 0; i < axes.size(); ++i) {
    WindowAxis& axis = axes[i];
    axis.out = axis.in;
    if (padding == Padding::same) {
      LOCKSTEP_REQUIRE(more[i] == 0, ErrorKind::config,
                       "layer {}: output_padding is for valid and explicit padding; with padding same the "
                       "output is the input times the stride",
                       layer);
      axis.in = axis.out * axis.stride;
      pad_same(axis);
      continue;
    }
    LOCKSTEP_REQUIRE(more[i] < axis.stride, ErrorKind::config,
                     "layer {}: output_padding {} must be smaller than the stride {}", layer, more[i],
                     axis.stride);
    axis.in = axis.stride * (axis.out - 1) + reach(axis) - axis.before - axis.after + more[i];
    LOCKSTEP_REQUIRE(
        axis.in >= 1, ErrorKind::config,
        "layer {}: padding of {} and {} leaves nothing of the {} elements that the windows reach", layer,
        axis.before, axis.after, axis.in + axis.before + axis.after);
  }
  return axes;
}

std::vector<std::int64_t> axes_option(const Params& params, std::string_view name, int axes,
                                      std::int64_t least) {
  std::vector<std::int64_t> values = params.integers(name);
  const std::size_t most = axes == 0 ? 3 : static_cast<std::size_t>(axes);
  const bool fits =
      values.size() == 1 || (axes == 0 ? !values.empty() && values.size() <= most : values.size() == most);
  if (fits && *std::min_element(values.begin(), values.end()) >= least) return values;
  if (axes == 0)
    throw params.error(name,
                       fmt::format("'{}' must be one number of at least {}, or one per axis", name, least));
  if (axes == 1) throw params.error(name, fmt::format("'{}' must be one number of at least {}", name, least));
  throw params.error(name, fmt::format("'{}' must be one number of at least {}, or {}: {}", name, least,
                                       axes == 2 ? "two" : "three", axis_names(axes)));
}

Extents per_axis(const std::vector<std::int64_t>& values, int axes, std::int64_t missing,
                 const std::string& layer, std::string_view option) {
  LOCKSTEP_REQUIRE(values.size() == 1 || values.size() == static_cast<std::size_t>(axes), ErrorKind::config,
                   "layer {}: {} has {} numbers, but the input has {} spatial axes", layer, option,
                   values.size(), axes);
  Extents all{missing, missing, missing};
  for (int i = 0; i < axes; ++i)
    all[static_cast<std::size_t>(3 - axes + i)] =
        values[values.size() == 1 ? 0 : static_cast<std::size_t>(i)];
  return all;
}

Margins margins(const Node& list, int axes, const std::string& layer, std::string_view option,
                std::int64_t most) {
  LOCKSTEP_REQUIRE(list.kind == Node::Kind::list && list.items.size() == 2 * static_cast<std::size_t>(axes),
                   ErrorKind::config, "{}: layer {}: explicit {} is {}", list.where, layer, option,
                   margin_names(axes));
  Margins result;
  for (std::size_t i = 0; i < static_cast<std::size_t>(axes); ++i) {
    const std::size_t axis = 3 - static_cast<std::size_t>(axes) + i;
    result.before[axis] = parsed(list.items[2 * i], option, most);
    result.after[axis] = parsed(list.items[2 * i + 1], option, most);
  }
  return result;
}

namespace {

/// For samples that have all axes of space, and none of channels.
std::string one_channel_advice(const Shape& sample, int axes) {
  if (sample.rank() != axes) return "";
  std::string extents;
  for (int axis = 0; axis < axes; ++axis) extents += fmt::format("{}, ", sample[axis]);
  return fmt::format("; the layer reshape: {{shape: [{}1]}} before it makes them samples of one channel",
                     extents);
}

}  // namespace

int spatial_axes(std::span<const Shape> inputs, int least, int most, const char* kind,
                 const std::string& layer) {
  static const char* const kNames[] = {"", "steps x channels", "height x width x channels",
                                       "depth x height x width x channels"};
  std::string takes;
  for (int axes = least; axes <= most; ++axes)
    takes += (axes > least ? " or " : "") + std::string(kNames[axes]);
  LOCKSTEP_REQUIRE(inputs.size() == 1 && inputs[0].rank() >= least + 1 && inputs[0].rank() <= most + 1,
                   ErrorKind::config, "layer {}: {} takes one input of {} per sample, not {}", layer, kind,
                   takes,
                   inputs.empty()      ? "nothing"
                   : inputs.size() > 1 ? fmt::format("{} inputs", inputs.size())
                                       : inputs[0].to_string() + one_channel_advice(inputs[0], least));
  return inputs[0].rank() - 1;
}

Shape spatial_shape(const Extents& extents, int axes, std::int64_t channels) {
  std::array<std::int64_t, 4> all{};
  std::copy(extents.end() - axes, extents.end(), all.begin());
  all[static_cast<std::size_t>(axes)] = channels;
  return Shape(std::span<const std::int64_t>(all.data(), static_cast<std::size_t>(axes) + 1));
}

Extents spatial_extents(const Shape& sample) {
  Extents extents{1, 1, 1};
  for (int axis = 0; axis + 1 < sample.rank(); ++axis)
    extents[static_cast<std::size_t>(3 - (sample.rank() - 1) + axis)] = sample[axis];
  return extents;
}

std::array<bool, 3> circular_axes(const std::vector<std::string>& names, int axes, const std::string& layer) {
  static constexpr std::string_view kAxes[] = {"depth", "height", "width"};
  std::array<bool, 3> circular{};
  for (const std::string& name : names) {
    bool known = false;
    for (int i = 3 - axes; i < 3; ++i) {
      const std::string_view own = axes == 1 ? "steps" : kAxes[i];
      if (name != own && name != "all") continue;
      circular[static_cast<std::size_t>(i)] = known = true;
    }
    LOCKSTEP_REQUIRE(known, ErrorKind::config,
                     "layer {}: circular: '{}' is no axis of its input, which has {}", layer, name,
                     axes == 1   ? "steps"
                     : axes == 2 ? "height and width"
                                 : "depth, height and width");
  }
  return circular;
}

const char* axis_names(int axes) {
  return axes == 1 ? "steps" : axes == 2 ? "[height, width]" : "[depth, height, width]";
}

const char* margin_names(int axes) {
  return axes == 1   ? "[before, after]"
         : axes == 2 ? "[top, bottom, left, right]"
                     : "[front, back, top, bottom, left, right]";
}

}  // namespace lockstep
