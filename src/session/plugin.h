// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Plugins: shared objects that a configuration names. They bring hooks, layers, functions as layers, losses,
// readers, optimizers and schedules.
//
//   plugins: [build/libmine.so]
//   hooks: [{greet: {every_steps: 10}}]
//
// In the plugin:
//
//   LOCKSTEP_PLUGIN {
//     lockstep::hook_table().add({"greet", "Says hello.", kTable, make_greet});
//   }
//
// Tables of session/hooks/hook_table.h, model/layer_table.h, model/loss.h, data/reader_table.h,
// data/transform.h, optim/optimizer_table.h and optim/schedule.h take others in the same way, and
// model/function_layer.h has register_function("log1p", infer, forward).
//
// Every command that reads a configuration loads the plugins before it makes a model. A plugin is compiled
// against the headers of the program that loads it, with the same compiler version. It does not link
// Lockstep, because the program exports what it needs (examples/layer_plugin, examples/hook_plugin).
#pragma once

#include <string>

namespace lockstep {

/// What a plugin was compiled with. A program loads only plugins with its own value. The number grows with
/// every change of a class or table that plugins use, because an older plugin would call wrong functions.
inline constexpr const char* kPluginBuild = "lockstep plugin 9, compiler " __VERSION__;

/// Loads the shared object at `path` unless it is loaded already; it stays loaded. Each rank loads its own.
/// `where` is the position in the configuration. Throws Error(config) that names the file. One thread, before
/// anything runs.
void load_plugin(const std::string& path, const std::string& where);

}  // namespace lockstep

#define LOCKSTEP_PLUGIN                                                               \
  extern "C" const char* lockstep_plugin_build() { return ::lockstep::kPluginBuild; } \
  extern "C" void lockstep_plugin_register()
