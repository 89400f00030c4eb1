// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The extents of a tensor, outermost axis first. Channels are last: N,H,W,C for images, N,F for rows of
// features.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace lockstep {

class Shape {
 public:
  static constexpr int kMaxRank = 8;

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> extents);
  explicit Shape(std::span<const std::int64_t> extents);

  int rank() const { return rank_; }
  std::int64_t operator[](int axis) const { return extents_[static_cast<std::size_t>(axis)]; }
  /// The extent of the last axis (channels, features); 1 for a scalar.
  std::int64_t last() const { return rank_ == 0 ? 1 : extents_[static_cast<std::size_t>(rank_ - 1)]; }
  /// Product of all extents; 1 for a scalar.
  std::int64_t num_elements() const;
  /// This shape with `extent` as a new first axis: turns the shape of a sample into that of a batch.
  Shape with_front(std::int64_t extent) const;
  /// This shape without its first axis.
  Shape without_front() const;
  std::span<const std::int64_t> extents() const { return {extents_.data(), static_cast<std::size_t>(rank_)}; }
  /// "8x8x1"; "scalar" for rank 0.
  std::string to_string() const;

  friend bool operator==(const Shape& a, const Shape& b);

 private:
  std::array<std::int64_t, kMaxRank> extents_{};
  int rank_ = 0;
};

}  // namespace lockstep
