// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The part of a layer that has no variables of its own and uses those of a layer of another kind, which its
// option shared_with names. The graph finds it with a dynamic_cast from Layer.
#pragma once

#include <string_view>

namespace lockstep {

class BorrowingLayer {
 public:
  virtual ~BorrowingLayer() = default;
  /// The kind of the layer whose variables it uses.
  virtual std::string_view owner_kind() const = 0;
};

}  // namespace lockstep
