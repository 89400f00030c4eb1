// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Which values of a result of evaluations are better. Each metric declares it (MetricEntry::direction); a
// loss is better where it is smaller, an accuracy where it is larger. Options that compare results
// (best_mode, sweep.mode, the mode of reduce_on_plateau) follow it, unless they are given for a metric
// without one.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/error.h"

namespace lockstep {

struct MetricSpec;

enum class Direction {
  none,  ///< the metric does not say: a mean of outputs, say
  min,   ///< smaller is better
  max    ///< larger is better
};

/// The direction of a result, with or without "eval/": a metric of `metrics` by its name, "loss",
/// "loss/HEAD", "accuracy" or "HEAD/accuracy", or else the metric that is called so where nothing renames it.
/// Any other name has none.
Direction direction_of(std::string_view name, std::span<const MetricSpec> metrics);

/// "min" or "max"; "null" for none.
std::string_view name_of(Direction direction);
/// "a smaller" or "a larger".
std::string_view better_text(Direction direction);

/// An option that says min or max, next to a metric.
struct DirectionOption {
  Direction given = Direction::none;  ///< none: left out
  std::string_view metric;            ///< as it was written
  std::string_view option;            ///< as --set names it: "checkpoint.best_mode"
  std::string where = {};             ///< position in the configuration
};

/// The direction to compare by. Throws Error(config) if the option says the opposite of the metric, or if
/// neither says anything.
Direction resolve(const DirectionOption& option, Direction of_metric);

/// What compares values of one metric, such as a schedule that follows it.
class MetricComparer {
 public:
  virtual ~MetricComparer() = default;
  /// As its option says; none: it was left out.
  virtual Direction given_direction() const = 0;
  /// As the option and the metric say. Before the first comparison.
  virtual void set_direction(Direction direction) = 0;
};

/// The value of an option with choices min and max that may be null.
Direction direction_from(std::string_view text);

}  // namespace lockstep
