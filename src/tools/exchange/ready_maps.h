// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Mappings that come with Lockstep, from built-in nets to the names of other programs.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "session/rename_map.h"

namespace lockstep {

/// Names for --map: "torchvision".
std::vector<std::string_view> ready_map_names();

/// torchvision: resnet18, resnet34 and resnet50 have the names of torchvision's nets, whatever the block is
/// called in the model. Nothing for a name that is none.
std::optional<RenameMap> ready_map(std::string_view name);

}  // namespace lockstep
