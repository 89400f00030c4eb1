// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Initial values of variables. Element i of a variable is a function of the seed, the variable's name and i,
// so every rank computes the same values and nothing is broadcast.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "config/params.h"
#include "config/table.h"
#include "core/shape.h"

namespace lockstep {

/// Computes initial values. It has no state, so variables can share it.
class Initializer {
 public:
  virtual ~Initializer() = default;
  /// Fills `values` (row-major, shape.num_elements()) of the variable `name`.
  virtual void fill(std::uint64_t seed, std::string_view name, const Shape& shape,
                    std::span<float> values) const = 0;
};

/// Fan-in and fan-out of a kernel (Glorot and Bengio 2010). The last axis is out, the one before it in, and
/// the leading axes are the receptive field.
struct Fans {
  double in, out;
};
Fans fans_of(const Shape& kernel);

struct InitializerEntry {
  std::string_view name, help;
  std::span<const ParamSpec> table;
  std::shared_ptr<const Initializer> (*make)(const Params&);
};
/// Lockstep's own initializers, then those that add() added.
Table<InitializerEntry>& initializer_table();

/// Makes an initializer from a name ("he_normal") or from a map of one name to its options
/// ({uniform: {low: -0.1, high: 0.1}}).
std::shared_ptr<const Initializer> make_initializer(const Node& node);
std::shared_ptr<const Initializer> make_initializer(std::string_view name);

}  // namespace lockstep
