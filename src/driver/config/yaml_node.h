// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// YAML in and out: text becomes a tree of Nodes with positions ("digits.yaml:12:5"), a tree becomes text
// again. yaml-cpp stays in the .cpp. Scalars follow YAML 1.2's core schema (core/scalar.h): `on` and `yes`
// are text.
#pragma once

#include <string>
#include <string_view>

#include "core/params.h"

namespace lockstep {

/// Reads `text`; `name` is what positions begin with. Broken YAML, duplicate keys, keys that are not scalars,
/// unknown tags and more than one document throw Error(config) with position.
Node parse_yaml(std::string_view text, const std::string& name);
/// Reads a file; one that is missing or cannot be read throws Error(config).
Node read_yaml(const std::string& path);

/// The tree as YAML, in block style; lists of scalars on one line. parse_yaml reads the same values back.
std::string to_yaml(const Node& node);

/// Puts `value` at `path` ("train.batch_size"), in place of what was there. Segments are keys of maps, which
/// are made if missing; in lists an index, or the `name` of an item ("model.layers.conv1.filters"). A path
/// through a scalar or to an unknown list item throws Error(config) at `value.where`.
void set_value(Node& root, std::string_view path, Node value);
/// Applies "a.b.c=value", the value being YAML; its position is "--set a.b.c=value".
void apply_override(Node& root, std::string_view assignment);

}  // namespace lockstep
