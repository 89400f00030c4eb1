// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The way back through a transform of values: what a model predicts for a transformed target becomes a number
// in the unit that the data have.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

namespace lockstep {

/// What a transform does to one number of a channel, and the way back. Empty functions change nothing.
struct UnitChange {
  std::function<double(double number, std::int64_t channel)> forward = {}, back = {};
};

/// A transform of each value by itself that has a way back; a second base of its class.
class UnitTransform {
 public:
  virtual ~UnitTransform() = default;
  /// After prepare(). None: with these options there is no way back.
  virtual std::optional<UnitChange> unit_change() const = 0;
};

}  // namespace lockstep
