// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Choosing variables and layers by patterns (name_pattern.h). A pattern also matches a path of which it
// matches a beginning: "conv1" and "conv*" match "conv1/kernel".
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/name_pattern.h"

namespace lockstep {

bool matches_path(const NamePattern& pattern, std::string_view path);

/// What to write in place of `pattern`, which matches none of `names`. `what`: "variables", "layers".
std::string advice_for_names(const std::string& pattern, std::span<const std::string> names,
                             std::string_view what);

}  // namespace lockstep
