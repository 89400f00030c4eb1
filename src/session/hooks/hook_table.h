// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The hooks that a configuration can name. To add one: a file in session/hooks/, a line in the table and a
// test. The options in the table are its documentation (docs/hooks.md describes hooks in general).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/params.h"
#include "config/table.h"
#include "session/hook.h"

namespace lockstep {

/// What make() gets in addition to the hook's own options.
struct HookSetting {
  std::string base_directory;  ///< absolute: where relative paths of the configuration begin
  std::string resolved(const std::string& path) const;
};

struct HookEntry {
  std::string_view name, help;
  std::span<const ParamSpec> table;
  std::unique_ptr<Hook> (*make)(const Params& options, const HookSetting& setting);
  /// What a run that continues with this hook, or without it, changes.
  Change change = Change::result;
};

/// Lockstep's own hooks, then those that add() added.
Table<HookEntry>& hook_table();

/// A hook of a configuration's list, with checked options: make() may still refuse them. Each call makes a
/// new hook.
struct HookSpec {
  HookEntry entry;
  Params options;
  std::string where;
  /// Unique in the list. The first hook of a kind has that of its kind, "logging"; the others, in their
  /// order, "logging_2", "logging_3". Checkpoints keep the state of a hook under it: do not change.
  std::string name = {};
  std::unique_ptr<Hook> make(const HookSetting& setting) const;
};

/// `list`: the section `hooks`; null: none. Plugins are loaded already. Makes every hook once, so that all
/// mistakes are found before anything starts. Throws Error(config) with position.
std::vector<HookSpec> hooks_from_config(const Node& list, const HookSetting& setting);

}  // namespace lockstep
