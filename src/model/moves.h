// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What concat, split, slice and transpose share. Each of these layers is a strided copy; its backward pass is
// the same copy in the other direction. Numbers keep the type in which they arrive.
#pragma once

#include <string>
#include <vector>

#include "model/layer.h"

namespace lockstep {

/// A layer whose outputs have the type of its first input, and whose backward reads no activation.
class MoveLayer : public Layer {
 public:
  MoveLayer(std::string name, const char* kind) : Layer(std::move(name)), kind_(kind) {}
  LayerTraits traits() const final {
    return {.kind = kind_,
            .inputs = TypeRule::first_input,
            .outputs = TypeRule::first_input,
            .backward_reads_input = false};
  }

 private:
  const char* kind_;
};

/// Copies a block of shape `block` out of an array of shape `from` into an array of shape `to`. The copy's
/// addresses are those of the block's first element in each array.
StridedCopy block_copy(const Shape& block, const Shape& from, const Shape& to);

/// `shape` with another extent of one axis.
Shape with_extent(const Shape& shape, int axis, std::int64_t extent);

/// A whole and its parts along an axis, for concat and split.
class AxisParts {
 public:
  void set(const Shape& whole, int axis, const std::vector<Shape>& parts);
  std::size_t count() const { return parts_.size(); }
  /// Copies part i into the whole.
  void join(const Pass& pass, std::size_t i, ConstData part, Data whole) const;
  /// Copies part i out of the whole.
  void cut(const Pass& pass, std::size_t i, ConstData whole, Data part) const;

 private:
  struct Part {
    StridedCopy into, out_of;
    std::int64_t offset;  ///< of its first element in the whole
  };
  std::vector<Part> parts_;
};

}  // namespace lockstep
