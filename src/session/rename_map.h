// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The map {this model's name: the name in the file} of warm_start.rename and of `lockstep import --map`.
#pragma once

#include <string>
#include <vector>

#include "config/params.h"
#include "io/checkpoint_names.h"

namespace lockstep {

struct RenameMap {
  std::vector<NameRules::Rule> rules;
  std::vector<std::string> left_out;  ///< names, scopes and patterns of this model with null on their right
};

/// Throws Error(config) with position for a line that has no name on its right, or if `map` is no map.
RenameMap rename_map(const Node& map);

}  // namespace lockstep
