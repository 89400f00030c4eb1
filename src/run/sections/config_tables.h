// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The tables of the configuration's sections, collected from the rooms that declare them. `data`, `model` and
// `optimizer` are checked by the tables of the readers, layers and optimizers that they name.
#pragma once

#include <span>
#include <string_view>

#include "config/params.h"

namespace lockstep {

struct ConfigSection {
  std::string_view name;  ///< the key at the top level; empty for the top level itself
  std::string_view help;
  std::span<const ParamSpec> table;
};

/// The top level first, then the sections, in the order of the reference.
std::span<const ConfigSection> config_sections();
/// One section by its name; "" is the top level.
const ConfigSection& config_section(std::string_view name);

}  // namespace lockstep
