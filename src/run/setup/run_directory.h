// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The target of train, evaluate and predict: a run directory (its config.yaml and newest checkpoint), or a
// configuration file.
#pragma once

#include <string>

#include "run/sections/config.h"
#include "run/setup/run_arguments.h"

namespace lockstep {

struct RunTarget {
  Config config;
  std::string run_dir;
};

/// Reads the configuration. Before MPI starts. Throws Error(config).
RunTarget resolve_target(const RunArguments& arguments);
/// The target of `train`. Throws Error(usage), too: a run directory is its own --run-dir.
RunTarget resolve_target(const TrainArguments& arguments);

}  // namespace lockstep
