// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Nets and parts of nets as blocks (blocks.h), in YAML.
#pragma once

#include <span>
#include <string_view>

namespace lockstep {

struct BuiltInNet {
  std::string_view name, help;
  std::string_view yaml;   ///< a map with `parameters` and `layers`
  std::string_view fixed;  ///< other defaults of parameters, as a YAML map; may be empty
};
std::span<const BuiltInNet> built_in_nets();

}  // namespace lockstep
