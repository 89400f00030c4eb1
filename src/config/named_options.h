// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A choice with options, written as a name alone (`relu`) or as a map from one name to its options (`dropout:
// {rate: 0.2}`). Layers, losses, optimizers, schedules and initialisers use this form. Their tables have
// entries with `name`, `help` and `table`.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/params.h"

namespace lockstep {

struct NamedOptions {
  std::string name;
  std::string where;
  Node options;  ///< a map, or null
};

/// Reads a choice. Throws Error(config) if `node` has neither form. `what` is "layer", "optimizer", ... for
/// messages.
NamedOptions named_options(const Node& node, std::string_view what);

/// The option to name where several do not go together: one from the command line if there is one, else the
/// last.
std::string_view option_to_blame(const Params& params, std::initializer_list<std::string_view> names);

/// Throws Error(config) for an unknown name and suggests the right one.
[[noreturn]] void throw_unknown_name(const NamedOptions& named, std::string_view what,
                                     std::span<const std::string_view> known);

}  // namespace lockstep
