// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads YAML text into a tree of Nodes with positions ("digits.yaml:12:5") and writes a tree as text.
// yaml-cpp is included in the .cpp only. Scalars follow YAML 1.2's core schema (core/scalar.h): `on` and
// `yes` are text.
#pragma once

#include <string>
#include <string_view>

#include "config/params.h"

namespace lockstep {

/// Reads `text`; Positions begin with `name`. Broken YAML, duplicate keys, keys that are not scalars,
/// unknown tags and more than one document throw Error(config) with position.
Node parse_yaml(std::string_view text, const std::string& name);
/// Reads a file; one that is missing or cannot be read throws Error(config).
Node read_yaml(const std::string& path);

/// The tree as YAML, in block style; lists of scalars on one line. parse_yaml reads the same values back.
std::string to_yaml(const Node& node);

}  // namespace lockstep
