// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/plugin.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/error.h"

namespace lockstep {

namespace {

template <typename Function>
Function* find_symbol(void* library, const char* name, const std::string& path) {
  void* symbol = ::dlsym(library, name);
  if (symbol == nullptr)
    throw Error(ErrorKind::config,
                fmt::format("this shared object is not a Lockstep plugin: it has no {}", name), path,
                "A plugin registers its contents in LOCKSTEP_PLUGIN { ... } (session/plugin.h).");
  return reinterpret_cast<Function*>(symbol);
}

}  // namespace

void load_plugin(const std::string& path, const std::string& where) {
  static std::vector<std::string> loaded;
  if (std::ranges::find(loaded, path) != loaded.end()) return;
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = ::dlerror();
    throw Error(ErrorKind::config,
                fmt::format("cannot load the plugin: {}", reason != nullptr ? reason : "unknown reason"),
                where, "Paths begin in the configuration's folder.");
  }
  const char* build = find_symbol<const char*()>(library, "lockstep_plugin_build", path)();
  if (std::strcmp(build, kPluginBuild) != 0)
    throw Error(ErrorKind::config,
                fmt::format("the plugin was built for '{}', this program is '{}'", build, kPluginBuild), path,
                "Build it again with the headers of this Lockstep and the same compiler.");
  find_symbol<void()>(library, "lockstep_plugin_register", path)();
  loaded.push_back(path);
}

}  // namespace lockstep
