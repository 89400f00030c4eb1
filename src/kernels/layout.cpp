// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/layout.h"

#include <algorithm>

#include "core/error.h"

namespace lockstep {

void StridedCopy::add_axis(std::int64_t extent, std::int64_t from_stride, std::int64_t to_stride) {
  if (rank > 0 && extent == 1) return;
  if (rank > 1) {  // the sample axis is never merged, since its extent varies
    const int last = rank - 1;
    if (from_strides[last] == extent * from_stride && to_strides[last] == extent * to_stride) {
      extents[last] *= extent;
      from_strides[last] = from_stride;
      to_strides[last] = to_stride;
      return;
    }
  }
  LOCKSTEP_CHECK(rank < kMaxRank, "a copy of more than {} axes", kMaxRank);
  extents[rank] = extent;
  from_strides[rank] = from_stride;
  to_strides[rank] = to_stride;
  ++rank;
}

StridedCopy StridedCopy::reversed() const {
  StridedCopy back;
  int order[kMaxRank] = {};
  for (int axis = 0; axis < rank; ++axis) order[axis] = axis;
  // The axis with the smallest stride of the destination becomes the innermost; the sample axis stays first.
  std::sort(order + std::min(rank, 1), order + rank,
            [&](int a, int b) { return from_strides[a] > from_strides[b]; });
  for (int i = 0; i < rank; ++i)
    back.add_axis(extents[order[i]], to_strides[order[i]], from_strides[order[i]]);
  return back;
}

}  // namespace lockstep
