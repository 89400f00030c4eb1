// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads YAML text into a tree of Nodes with positions ("digits.yaml:12:5") and writes a tree as text.
// yaml-cpp is included in the .cpp only. Scalars follow YAML 1.2's core schema (core/scalar.h): `on` and
// `yes` are text.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/params.h"

namespace lockstep {

/// Reads `text`; Positions begin with `name`. Broken YAML, duplicate keys, keys that are not scalars,
/// unknown tags and more than one document throw Error(config) with position.
Node parse_yaml(std::string_view text, const std::string& name);
/// Reads a file; one that is missing or cannot be read throws Error(config).
Node read_yaml(const std::string& path);

/// The tree as YAML, in block style; lists of scalars on one line. parse_yaml reads the same values back.
std::string to_yaml(const Node& node);

/// Replaces the value at `path` ("train.batch_size"). Segments are keys of maps, created if missing; in lists
/// an index, or the name of an item ("model.layers.conv1.filters"): its `name`, the name that a layer has
/// without one ("dropout2"), or its kind if no other item is of that kind ("hooks.logging"). The name of a
/// choice may be left out: "optimizer.learning_rate" is that of {adam: {learning_rate: 0.1}} and of `adam`. A
/// path through another scalar or to an unknown list item throws Error(config) at `value.where`.
void set_value(Node& root, std::string_view path, Node value);
/// Applies "a.b.c=value", the value being YAML; its position is "--set a.b.c=value".
void apply_override(Node& root, std::string_view assignment);
/// Applies all of them in order, and collects mistakes. train.steps and train.epochs replace each other if
/// the file gives one and the command line the other.
void apply_overrides(Node& root, std::span<const std::string> assignments, ErrorCollector& mistakes);

}  // namespace lockstep
