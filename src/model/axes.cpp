// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "model/axes.h"

#include <algorithm>

namespace lockstep {

int axis_of(const Layer& layer, std::string_view option, std::int64_t axis, const Shape& shape) {
  const std::int64_t rank = shape.rank();
  LOCKSTEP_REQUIRE(axis >= -rank && axis < rank, ErrorKind::config,
                   "layer {}: {} {} is not an axis of its input {}, which has {} axes", layer.name(), option,
                   axis, shape.to_string(), rank);
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

std::vector<int> axes_of(const Layer& layer, std::string_view option, std::span<const std::int64_t> axes,
                         const Shape& shape) {
  std::vector<int> result;
  if (axes.empty())
    for (int axis = 0; axis < shape.rank(); ++axis) result.push_back(axis);
  for (std::int64_t axis : axes) result.push_back(axis_of(layer, option, axis, shape));
  std::sort(result.begin(), result.end());
  LOCKSTEP_REQUIRE(std::adjacent_find(result.begin(), result.end()) == result.end(), ErrorKind::config,
                   "layer {}: {} names an axis of its input {} twice", layer.name(), option,
                   shape.to_string());
  return result;
}

std::int64_t product(const Shape& shape, int first, int last) {
  std::int64_t elements = 1;
  for (int axis = first; axis < last; ++axis) elements *= shape[axis];
  return elements;
}

void require_one_input(const Layer& layer, std::span<const Shape> inputs) {
  LOCKSTEP_REQUIRE(inputs.size() == 1, ErrorKind::config, "layer {}: {} takes one input, not {}",
                   layer.name(), layer.kind(), inputs.size());
}

}  // namespace lockstep
