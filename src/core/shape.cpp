// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "core/shape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/error.h"
#include "core/sizes.h"

namespace lockstep {

Shape::Shape(std::initializer_list<std::int64_t> extents)
    : Shape(std::span(extents.begin(), extents.size())) {}

Shape::Shape(std::span<const std::int64_t> extents) : rank_(static_cast<int>(extents.size())) {
  LOCKSTEP_CHECK(extents.size() <= kMaxRank, "a tensor has at most {} axes", kMaxRank);
  for (std::int64_t extent : extents) LOCKSTEP_CHECK(extent >= 0, "extent {}", extent);
  std::copy(extents.begin(), extents.end(), extents_.begin());
  if (!product_up_to(kMaxExtentProduct, extents))
    throw Error(ErrorKind::config,
                fmt::format("a tensor of {} would take {} in float32", to_string(),
                            size_text(product_in_double(extents) * sizeof(float))),
                {}, "Choose smaller sizes.");
}

std::int64_t Shape::num_elements() const {
  std::int64_t product = 1;
  for (std::int64_t extent : extents()) product *= extent;
  return product;
}

Shape Shape::with_front(std::int64_t extent) const {
  LOCKSTEP_CHECK(rank_ < kMaxRank);
  Shape shape;
  shape.rank_ = rank_ + 1;
  shape.extents_[0] = extent;
  std::copy_n(extents_.begin(), rank_, shape.extents_.begin() + 1);
  return shape;
}

Shape Shape::without_front() const {
  LOCKSTEP_CHECK(rank_ > 0);
  return Shape(extents().subspan(1));
}

std::string Shape::to_string() const {
  return rank_ == 0 ? "scalar" : fmt::format("{}", fmt::join(extents(), "x"));
}

bool operator==(const Shape& a, const Shape& b) {
  return a.rank_ == b.rank_ &&
         std::equal(a.extents_.begin(), a.extents_.begin() + a.rank_, b.extents_.begin());
}

}  // namespace lockstep
