// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Choosing variables and layers by patterns (name_pattern.h). A pattern also matches a path of which it
// matches a beginning: "conv1" and "conv*" match "conv1/kernel". What a regular expression looks ahead for
// counts in the whole path, too: "re:(?!fc/).*" matches "fc", but not "fc/kernel".
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/name_pattern.h"

namespace lockstep {

bool matches_path(const NamePattern& pattern, std::string_view path);
/// A regular expression with (?!...) or (?=...): whether it means a variable is seen in the variable's path,
/// not in its layer's name.
bool looks_ahead(const NamePattern& pattern);

/// What to write in place of `pattern`, which matches none of `names`. `what`: "variables", "layers".
std::string advice_for_names(const std::string& pattern, std::span<const std::string> names,
                             std::string_view what);

}  // namespace lockstep
