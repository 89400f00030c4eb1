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
//     lockstep::hook_table().add({"greet", "Says hello.", kTable, make_greet});   //
//     session/hooks/hook_table.h lockstep::layer_table().add({"prelu", "...", kOptions, make_prelu});  //
//     model/layer_table.h lockstep::register_function("log1p", infer, forward);                 //
//     model/function_layer.h lockstep::loss_table().add({...});                                    //
//     model/loss.h lockstep::reader_table().add({...});                                  //
//     data/reader_table.h lockstep::transform_table().add({...});                               //
//     data/transform.h lockstep::optimizer_table().add({...});                               //
//     optim/optimizer.h lockstep::schedule_table().add({...});                                //
//     optim/schedule.h
//   }
//
// Every command that reads a configuration loads the plugins before it makes a model. A plugin is compiled
// against the headers of the program that loads it, with the same compiler version. It does not link
// Lockstep, because the program exports what it needs (examples/layer_plugin, examples/hook_plugin).
#pragma once

#include <string>

namespace lockstep {

/// What a plugin was compiled with. A program loads only plugins with its own value. The number grows with
/// every change of a class or table that plugins use, because an older plugin would call wrong functions.
inline constexpr const char* kPluginBuild = "lockstep plugin 8, compiler " __VERSION__;

/// Loads the shared object at `path` unless it is loaded already; it stays loaded. Each rank loads its own.
/// `where` is the position in the configuration. Throws Error(config) that names the file. One thread, before
/// anything runs.
void load_plugin(const std::string& path, const std::string& where);

}  // namespace lockstep

#define LOCKSTEP_PLUGIN                                                               \
  extern "C" const char* lockstep_plugin_build() { return ::lockstep::kPluginBuild; } \
  extern "C" void lockstep_plugin_register()
