// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/value_place.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

namespace lockstep {

std::string place_text(const Shape& shape, std::int64_t index) {
  if (shape.num_elements() == 1) return "the value";
  if (shape.rank() <= 1) return fmt::format("value {} (from 0)", index);
  if (shape.rank() == 2) return fmt::format("value [{}, {}]", index / shape[1], index % shape[1]);
  const std::int64_t channels = shape.last(), channel = index % channels;
  std::vector<std::int64_t> position(static_cast<std::size_t>(shape.rank() - 1));
  index /= channels;
  for (std::size_t axis = position.size(); axis-- > 0; index /= shape[static_cast<int>(axis)])
    position[axis] = index % shape[static_cast<int>(axis)];
  const std::string at = channels == 1 ? "" : fmt::format(", channel {}", channel);
  return fmt::format("{} [{}]{}",
                     position.size() == 2   ? "pixel"
                     : position.size() == 3 ? "voxel"
                                            : "position",
                     fmt::join(position, ", "), at);
}

std::string label_column_text(std::int64_t column, std::int64_t columns) {
  return columns == 1 ? "the label" : fmt::format("label column {} (from 0)", column);
}

}  // namespace lockstep
