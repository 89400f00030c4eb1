// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "model/moves.h"

#include "model/axes.h"

namespace lockstep {

StridedCopy block_copy(const Shape& block, const Shape& from, const Shape& to) {
  StridedCopy copy;
  copy.add_axis(1, from.num_elements(), to.num_elements());
  for (int axis = 0; axis < block.rank(); ++axis)
    copy.add_axis(block[axis], product(from, axis + 1, from.rank()), product(to, axis + 1, to.rank()));
  return copy;
}

Shape with_extent(const Shape& shape, int axis, std::int64_t extent) {
  std::vector<std::int64_t> extents(shape.extents().begin(), shape.extents().end());
  extents[static_cast<std::size_t>(axis)] = extent;
  return Shape(extents);
}

void AxisParts::set(const Shape& whole, int axis, const std::vector<Shape>& parts) {
  std::int64_t offset = 0;
  parts_.clear();
  for (const Shape& part : parts) {
    parts_.push_back({block_copy(part, part, whole), block_copy(part, whole, part), offset});
    offset += product(part, axis, part.rank());
  }
}

void AxisParts::join(const Pass& pass, std::size_t i, ConstData part, Data whole) const {
  pass.kernels.layout.copy(pass.lane, parts_[i].into, pass.n, part, whole.offset(parts_[i].offset));
}

void AxisParts::cut(const Pass& pass, std::size_t i, ConstData whole, Data part) const {
  pass.kernels.layout.copy(pass.lane, parts_[i].out_of, pass.n, whole.offset(parts_[i].offset), part);
}

}  // namespace lockstep
