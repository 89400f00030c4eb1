// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A configuration as a flat list of values with every default filled in, and the difference of two of them.
// Two ways to write the same configuration (defaults, order of keys, 1e-3 and 0.001) give the same list. It
// reads trees of an earlier version or of another plugin too: what no table knows is compared as it is
// written.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "config/params.h"

namespace lockstep {

struct ConfigValue {
  std::string path;  ///< as --set takes it: "model.layers.conv1.filters"
  std::string value;
  Change change = Change::result;
  /// How an item with a kind and options (a layer, an optimizer) is written. `value` is its kind.
  std::string item = {};
};

/// `root`: the whole configuration. Where files lie is given as absolute paths; relative ones begin in
/// `base_directory`. Options of the two data sets have the paths data.train.KEY and data.eval.KEY, also where
/// they are written once.
std::vector<ConfigValue> config_values(const Node& root, const std::string& base_directory);

struct ConfigDifference {
  std::string path;
  std::optional<std::string> before, now;  ///< none: it is not there
  Change change = Change::result;
};

/// The differences in the order of `now`; what is only in `before` comes last. Of lists of more than ten
/// items, the values show some: "[7 alike, a, b and 20 more]".
std::vector<ConfigDifference> config_differences(std::span<const ConfigValue> before,
                                                 std::span<const ConfigValue> now);

/// The differences as a diff: a line "- path: value" for what was, a line "+ path: value" for what is now.
std::string diff_text(std::span<const ConfigDifference> differences);

}  // namespace lockstep
