// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Shared objects with hooks of the user's, named in a configuration:
//
//   plugins: [build/libmine.so]
//   hooks: [{greet: {every_steps: 10}}]
//
// The plugin's side:
//
//   LOCKSTEP_PLUGIN { lockstep::register_hook({"greet", "Says hello.", kTable, make_greet}); }
//
// A plugin is compiled against the headers of the program that loads it, with the same compiler version, and
// does not link Lockstep: the program exports what it needs (examples/hook_plugin).
#pragma once

#include <string>

#include "driver/hook_table.h"

namespace lockstep {

/// What a plugin was compiled with: two that differ do not fit.
inline constexpr const char* kPluginBuild = "lockstep hooks 1, compiler " __VERSION__;

/// Loads the shared objects, once each; they stay. Every rank for itself. Throws Error(config) that names the
/// file.
void load_plugins(const Config& config);

}  // namespace lockstep

#define LOCKSTEP_PLUGIN                                                               \
  extern "C" const char* lockstep_plugin_build() { return ::lockstep::kPluginBuild; } \
  extern "C" void lockstep_plugin_register()
