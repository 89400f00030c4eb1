// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/setup/gpu_module.h"

#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "core/error.h"
#include "kernels/backend.h"

namespace lockstep {

namespace {

constexpr const char* kFile = "liblockstep_cuda.so";

/// The module's file: next to the program in a build folder, in ../lib/lockstep of an installed one.
std::filesystem::path module_file() {
  std::error_code failed;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", failed);
  const std::filesystem::path folder = program.parent_path();
  for (const char* relative : {"", "../lib/lockstep", "../lib64/lockstep", "../" LOCKSTEP_MODULE_FOLDER})
    if (std::filesystem::path file = folder / relative / kFile; std::filesystem::exists(file, failed))
      return file;
  return {};
}

}  // namespace

std::string load_gpu_module() {
  if (!backends().empty()) return {};
  const std::filesystem::path file = module_file();
  if (file.empty()) return "this program was built without GPUs";
  void* library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = ::dlerror();
    return fmt::format("the GPU backend cannot be loaded: {}", reason != nullptr ? reason : "unknown reason");
  }
  const auto build = reinterpret_cast<const char* (*)()>(::dlsym(library, "lockstep_gpu_module_build"));
  const auto begin = reinterpret_cast<void (*)()>(::dlsym(library, "lockstep_gpu_module_register"));
  if (build == nullptr || begin == nullptr || std::strcmp(build(), LOCKSTEP_MODULE_BUILD) != 0)
    return fmt::format("{} is of another build than this program", file.string());
  begin();
  return {};
}

bool host_has_gpus() { return ::access("/dev/nvidiactl", R_OK | W_OK) == 0; }

}  // namespace lockstep
