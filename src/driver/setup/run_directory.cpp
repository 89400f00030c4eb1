// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/setup/run_directory.h"

#include <filesystem>

namespace lockstep {

RunTarget resolve_target(const CommandLine& line) {
  namespace fs = std::filesystem;
  RunTarget target;
  if (fs::is_directory(line.target)) {
    target.run_dir = line.target;
    const std::string config = (fs::path(line.target) / "config.yaml").string();
    if (!fs::exists(config))
      throw Error(ErrorKind::config, "this is no run directory: it has no config.yaml", line.target,
                  "Give the folder that `lockstep train` wrote (runs/NAME), or a configuration file.");
    target.config = load_config(config, line.overrides);
  } else {
    target.config = load_config(line.target, line.overrides);
    target.run_dir = line.run_dir.empty() ? default_run_directory(line.target) : line.run_dir;
  }
  return target;
}

}  // namespace lockstep
