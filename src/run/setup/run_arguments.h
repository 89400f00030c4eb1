// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Which run a job works on and how, as the command line says it: the arguments of `lockstep train`, and what
// evaluate, predict and sample have in common.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep {

/// --hang-rank and --hang-seconds: a rank that waits for a debugger before its first step.
struct HangArguments {
  std::optional<int> rank;
  double seconds = 3600;
};

/// What `train --resume` does about checkpoints in the run directory.
enum class Resume {
  automatic,  ///< continue if there is one
  never,      ///< refuse if there is one
  must        ///< fail if there is none
};

/// `overrides` are the assignments of --set, in order, then those that --steps and --threads stand for.
struct TrainArguments {
  std::string target;   ///< a configuration file, or a run directory to continue
  std::string run_dir;  ///< with a configuration file; empty: runs/<name of the configuration>
  std::vector<std::string> overrides;
  bool accept_changes = false;  ///< of the configuration or the data of the run that is continued
  Resume resume = Resume::automatic;
  std::vector<std::int64_t> record;  ///< steps
  HangArguments hang;
  bool quiet = false;
};

/// A run and one of its checkpoints: what evaluate, predict and sample have in common.
struct RunArguments {
  std::string target;      ///< a run directory; for evaluate also a configuration file
  std::string run_dir;     ///< with a configuration file; empty: its default run directory
  std::string checkpoint;  ///< empty: the newest intact one
  bool averages = true;    ///< use the moving averages of the variables, where the checkpoint has them
  std::vector<std::string> overrides;
  bool quiet = false;
};

}  // namespace lockstep
