// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "exchange/foreign_tensor.h"

#include <fmt/ranges.h>

#include <cstdint>
#include <cstring>

#include "core/error.h"
#include "core/shape.h"
#include "core/sizes.h"

namespace lockstep {

std::int64_t ForeignTensor::num_elements() const {
  std::int64_t count = 1;
  for (std::int64_t extent : extents) count *= extent;
  return count;
}

void check_extents(const ForeignTensor& tensor, const std::string& path) {
  const auto refuse = [&](const std::string& what) {
    throw Error(ErrorKind::data, fmt::format("tensor '{}' has {}", tensor.name, what), path,
                "The file may be damaged: write it again.");
  };
  if (tensor.extents.size() > static_cast<std::size_t>(Shape::kMaxRank))
    refuse(fmt::format("more than {} axes", Shape::kMaxRank));
  // Without extents of 0, so that no partial product overflows.
  std::vector<std::int64_t> others;
  for (const std::int64_t extent : tensor.extents)
    if (extent < 0)
      refuse(fmt::format("the extent {}", extent));
    else if (extent > 0)
      others.push_back(extent);
  if (!product_up_to(kMaxExtentProduct, others))
    refuse(fmt::format("the extents {}, which are too large", extents_text(tensor.extents)));
}

std::string extents_text(std::span<const std::int64_t> extents) {
  return fmt::format("[{}]", fmt::join(extents, ", "));
}

ForeignTensor with_axes(const ForeignTensor& from, std::span<const int> order) {
  const std::size_t rank = from.extents.size();
  LOCKSTEP_CHECK(order.size() == rank, "{} axes of {}", order.size(), rank);
  std::vector<std::int64_t> strides(rank, 1);  // of `from`, in elements
  for (std::size_t i = rank; i-- > 1;) strides[i - 1] = strides[i] * from.extents[i];
  ForeignTensor to{from.name, from.dtype, {}, std::vector<std::byte>(from.bytes.size())};
  std::vector<std::int64_t> steps;
  for (const int axis : order) {
    to.extents.push_back(from.extents[static_cast<std::size_t>(axis)]);
    steps.push_back(strides[static_cast<std::size_t>(axis)]);
  }
  const std::size_t size = size_in_bytes(from.dtype);
  std::vector<std::int64_t> place(rank, 0);
  const std::int64_t count = to.num_elements();
  std::int64_t source = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    std::memcpy(to.bytes.data() + static_cast<std::size_t>(i) * size,
                from.bytes.data() + static_cast<std::size_t>(source) * size, size);
    for (std::size_t axis = rank; axis-- > 0;) {
      source += steps[axis];
      if (++place[axis] < to.extents[axis]) break;
      source -= steps[axis] * to.extents[axis];
      place[axis] = 0;
    }
  }
  return to;
}

}  // namespace lockstep
