// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A run, or the members of an ensemble, as evaluate and predict take them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "driver/command_line/command_options.h"
#include "run/setup/run_arguments.h"

namespace lockstep {

struct EnsembleArguments {
  RunArguments run;
  /// The other members: further runs, or further checkpoints of `run`.
  std::vector<std::string> more_runs, more_checkpoints;

  /// Views of each sample, whose predictions are averaged; 1: the sample as it is.
  std::int64_t augmentations = 1;

  bool has_more() const { return !more_runs.empty() || !more_checkpoints.empty(); }
};

/// The positional argument `name` with a path of each run, and --checkpoint.
void add_ensemble(CommandOptions& options, EnsembleArguments& arguments, const char* name, const char* help);
/// --augmentations. `command` is for messages.
void add_augmentations(CommandOptions& options, EnsembleArguments& arguments, const char* command);

}  // namespace lockstep
