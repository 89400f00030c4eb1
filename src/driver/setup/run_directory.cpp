// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/setup/run_directory.h"

#include <filesystem>

namespace lockstep {

RunTarget resolve_target(const RunArguments& arguments) {
  namespace fs = std::filesystem;
  RunTarget target;
  if (fs::is_directory(arguments.target)) {
    target.run_dir = arguments.target;
    const std::string config = (fs::path(arguments.target) / "config.yaml").string();
    if (!fs::exists(config))
      throw Error(ErrorKind::config, "this is no run directory: it has no config.yaml", arguments.target,
                  "Give the folder that `lockstep train` wrote (runs/NAME), or a configuration file.");
    target.config = load_config(config, arguments.overrides);
  } else {
    target.config = load_config(arguments.target, arguments.overrides);
    target.run_dir = arguments.run_dir.empty() ? default_run_directory(arguments.target) : arguments.run_dir;
  }
  return target;
}

}  // namespace lockstep
