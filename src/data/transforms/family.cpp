// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/transforms/family.h"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep {

Grid image_of(const Shape& shape) {
  if (shape.rank() == 3) return {1, shape[0], shape[1], shape[2]};
  throw Error(ErrorKind::config,
              fmt::format("takes images, but the samples have the shape {}", shape.to_string()), "",
              "Images have the shape height x width x channels.");
}

Grid grid_of(const Shape& shape) {
  if (shape.rank() == 3) return {1, shape[0], shape[1], shape[2]};
  if (shape.rank() == 4) return {shape[0], shape[1], shape[2], shape[3]};
  throw Error(ErrorKind::config,
              fmt::format("takes images or volumes, but the samples have the shape {}", shape.to_string()),
              "",
              "Images have the shape height x width x channels, volumes depth x height x width x channels.");
}

Shape shape_of(const Grid& grid, const Shape& like) {
  if (like.rank() == 3) return {grid.height, grid.width, grid.channels};
  return {grid.depth, grid.height, grid.width, grid.channels};
}

std::array<std::int64_t, 3> per_axis(const std::vector<std::int64_t>& values, const Shape& shape,
                                     std::int64_t no_depth, std::string_view option) {
  const auto axes = static_cast<std::size_t>(shape.rank() - 1);
  if (values.size() != 1 && values.size() != axes)
    throw Error(ErrorKind::config,
                fmt::format("{} has {} numbers, but the samples have {} axes beside the channels ({})",
                            option, values.size(), axes, shape.to_string()),
                "", "Give one number for all axes, or one per axis.");
  std::array<std::int64_t, 3> result{no_depth, values[0], values[0]};
  if (axes == 3) result[0] = values[0];
  if (values.size() > 1) std::copy(values.begin(), values.end(), result.end() - values.size());
  return result;
}

std::vector<float> floats(const Params& params, const ParamSpec& option) {
  const std::vector<double>& values = params.reals(option.name);
  if (values.empty()) throw params.error(option.name, "is an empty list", "Give one value per channel.");
  return {values.begin(), values.end()};
}

std::array<float, 2> low_and_high(const Params& params, const ParamSpec& option) {
  const std::vector<double>& values = params.reals(option.name);
  if (values.size() != 2 || values[0] > values[1])
    throw params.error(option.name, "must be two numbers, the smaller first", "For example: [0.8, 1.2].");
  return {static_cast<float>(values[0]), static_cast<float>(values[1])};
}

}  // namespace lockstep
