// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A part of a sample with a name of its own: one of several inputs of a model.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/shape.h"

namespace lockstep {

struct NamedShape {
  std::string name;
  Shape shape;
  friend bool operator==(const NamedShape&, const NamedShape&) = default;
};

/// The shape of samples whose parts lie one after the other.
inline Shape joined_shape(std::span<const NamedShape> parts) {
  std::int64_t values = 0;
  for (const NamedShape& part : parts) values += part.shape.num_elements();
  return {values};
}

}  // namespace lockstep
