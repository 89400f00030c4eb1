// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "reference/documentation.h"

#include <filesystem>

namespace lockstep {

std::string documentation_path() {
  namespace fs = std::filesystem;
  std::error_code failed;
  const fs::path folder = fs::read_symlink("/proc/self/exe", failed).parent_path();
  const fs::path installed = folder / ".." / LOCKSTEP_DATA_FOLDER / "lockstep/docs/index.md";
  for (const fs::path& candidate : {installed, folder / "../../../docs/index.md"})
    if (fs::exists(candidate, failed)) return candidate.lexically_normal().string();
  return {};
}

}  // namespace lockstep
