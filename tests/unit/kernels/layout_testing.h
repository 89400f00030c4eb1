// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Strided copies for the tests, on the CPU and on GPUs.
#pragma once

#include <string>
#include <vector>

#include "kernels/layout.h"

namespace lockstep {

struct NamedCopy {
  std::string name;
  StridedCopy copy;
  std::int64_t samples, from_size, to_size;  ///< total elements
};

inline std::vector<NamedCopy> copies() {
  struct Axis {
    std::int64_t extent, from_stride, to_stride;
  };
  std::vector<NamedCopy> list;
  const auto add = [&](const std::string& name, std::int64_t samples, const std::vector<Axis>& axes) {
    StridedCopy copy;
    for (const Axis& axis : axes) copy.add_axis(axis.extent, axis.from_stride, axis.to_stride);
    list.push_back({name, copy, samples, samples * axes[0].from_stride, samples * axes[0].to_stride});
  };
  add("whole", 3, {{1, 12, 12}, {4, 3, 3}, {3, 1, 1}});
  add("block of wider rows", 2, {{1, 40, 24}, {5, 8, 4}, {4, 1, 1}});
  add("block into wider rows", 3, {{1, 30, 70}, {10, 3, 7}, {3, 1, 1}});
  add("long runs", 2, {{1, 300, 400}, {2, 150, 200}, {150, 1, 1}});
  add("transposed", 2, {{1, 35 * 21, 35 * 21}, {35, 1, 21}, {21, 35, 1}});
  add("axes rotated", 3, {{1, 60, 60}, {5, 1, 12}, {3, 20, 4}, {4, 5, 1}});
  add("outer axes exchanged", 2, {{1, 96, 96}, {3, 8, 32}, {4, 24, 8}, {8, 1, 1}});
  add("columns", 4, {{1, 18, 6}, {6, 3, 1}});
  add("into columns", 4, {{1, 6, 18}, {6, 1, 3}});
  add("both strided", 2, {{1, 20, 30}, {5, 4, 6}, {2, 2, 3}});
  add("one number", 5, {{1, 1, 1}});
  add("nothing", 0, {{1, 4, 4}, {4, 1, 1}});
  return list;
}

/// The same copy by its definition.
template <typename T>
void copy_by_definition(const StridedCopy& copy, std::int64_t samples, const std::vector<T>& from,
                        std::vector<T>& to) {
  std::int64_t count = samples;
  for (int axis = 1; axis < copy.rank; ++axis) count *= copy.extents[axis];
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t rest = i, source = 0, target = 0;
    for (int axis = copy.rank - 1; axis >= 0; --axis) {
      const std::int64_t index = axis == 0 ? rest : rest % copy.extents[axis];
      if (axis > 0) rest /= copy.extents[axis];
      source += index * copy.from_strides[axis];
      target += index * copy.to_strides[axis];
    }
    to[static_cast<std::size_t>(target)] = from[static_cast<std::size_t>(source)];
  }
}

}  // namespace lockstep
