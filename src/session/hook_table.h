// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Hooks that a configuration can name. To add one: one file in driver/hooks/, one line in the table, one
// test, and its options here are its documentation (docs/hooks.md says what hooks are).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/params.h"
#include "driver/config/config.h"
#include "session/hook.h"

namespace lockstep {

struct HookEntry {
  std::string_view name, help;
  std::span<const ParamSpec> table;
  std::unique_ptr<Hook> (*make)(const Params& options, const Config& config);
};

/// The built-in ones.
std::span<const HookEntry> hook_table();
/// For plugins: the entry's texts and table must live as long as the program. Throws Error(config) if the
/// name is taken.
void register_hook(const HookEntry& entry);
/// All that can be named: built in and registered.
std::vector<HookEntry> known_hooks();

/// Checks the configuration's list `hooks`; check_config() has loaded its plugins. Before MPI. Throws
/// Error(config) with position.
void check_hooks(const Config& config);
/// The hooks of the configuration's list `hooks`, in its order. Throws Error(config) with position.
std::vector<std::unique_ptr<Hook>> make_hooks(const Config& config);

}  // namespace lockstep
