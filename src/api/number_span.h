// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Numbers of any type in memory of the program, one after the other: a view that does not own them.
#pragma once

#include <concepts>
#include <cstddef>
#include <ranges>
#include <type_traits>

#include "core/dtype.h"

namespace lockstep {

class NumberSpan {
 public:
  NumberSpan() = default;
  /// An array, a vector (not a temporary one) or a span of float, double, Float16, BFloat16 or whole numbers.
  template <typename Range>
  requires(!std::same_as<std::remove_cvref_t<Range>, NumberSpan> && std::ranges::contiguous_range<Range> &&
           std::ranges::sized_range<Range> && std::ranges::borrowed_range<Range>) NumberSpan(Range&& values)
      : NumberSpan(std::ranges::data(values), static_cast<std::size_t>(std::ranges::size(values))) {}
  template <typename T>
  NumberSpan(const T* values, std::size_t size) : data_(values), size_(size), type_(dtype_of<T>) {}

  const void* data() const { return data_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  DType type() const { return type_; }

 private:
  const void* data_ = nullptr;
  std::size_t size_ = 0;
  DType type_ = DType::f32;
};

}  // namespace lockstep
