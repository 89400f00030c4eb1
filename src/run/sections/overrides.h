// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Values that replace those of a configuration: --set of the command line.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "config/params.h"

namespace lockstep {

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
