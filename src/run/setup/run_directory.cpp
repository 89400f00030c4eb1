// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/setup/run_directory.h"

#include <filesystem>

namespace lockstep {

namespace {

namespace fs = std::filesystem;

RunTarget resolved(const std::string& target, const std::string& run_dir,
                   std::span<const std::string> overrides) {
  std::error_code code;
  if (!fs::is_directory(target, code))
    return {load_config(target, overrides), run_dir.empty() ? default_run_directory(target) : run_dir};
  const std::string config = (fs::path(target) / "config.yaml").string();
  if (!fs::is_regular_file(config, code))  // to open a FIFO could wait for ever
    throw Error(ErrorKind::config, "this is no run directory: it has no config.yaml", target,
                "Give the folder that `lockstep train` wrote (runs/NAME), or a configuration file.");
  return {load_config(config, overrides), target};
}

}  // namespace

RunTarget resolve_target(const RunArguments& arguments) {
  return resolved(arguments.target, arguments.run_dir, arguments.overrides);
}

RunTarget resolve_target(const TrainArguments& arguments) {
  std::error_code code;
  if (!arguments.run_dir.empty() && fs::is_directory(arguments.target, code))
    throw Error(ErrorKind::usage, "train: a run directory is given, and --run-dir as well", arguments.target,
                "A run directory continues in itself. To begin another run like it, give its config.yaml.");
  return resolved(arguments.target, arguments.run_dir, arguments.overrides);
}

}  // namespace lockstep
