// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What evaluate and predict are pointed at: a run directory (its config.yaml and newest checkpoint), or a
// configuration.
#pragma once

#include <string>

#include "driver/command_line.h"
#include "driver/config/config.h"

namespace lockstep {

struct RunTarget {
  Config config;
  std::string run_dir;
};

/// From `target` and --run-dir of the command line. Reads the configuration; before MPI.
RunTarget resolve_target(const CommandLine& line);

}  // namespace lockstep
