// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The model of a run with the values of a checkpoint, and its evaluation set: made like in every command that
// computes, but on one rank and without MPI. Whatever is not there (moved data, a plugin) is no error: the
// report says what it lacks, and why.
#pragma once

#include <optional>
#include <string>

#include "comm/self_communicator.h"
#include "run/sections/config.h"
#include "run/setup/compute_device.h"
#include "run/setup/run_model.h"
#include "session/run_state.h"

namespace lockstep::report {

struct OpenedRun {
  std::optional<Config> config;  ///< empty: see problem
  RunData data;                  ///< with `model`
  std::optional<Model> model;    ///< empty: see problem
  std::optional<ComputeDevice> device;
  std::string problem;  ///< why there is no configuration, or no model; empty: there are both

  FoundCheckpoint checkpoint;  ///< whose values the variables have
  bool averaged = false;       ///< they are moving averages
  std::string no_values;       ///< why the variables have none; empty: they have
};

/// `with_data`: opens the evaluation set, too, or else the training set, because shapes of layers come from
/// data. `checkpoint`: a file, "last" or "best"; empty: the last. Throws nothing but Error(bug).
OpenedRun open_run(const std::string& run_dir, bool with_data, const std::string& checkpoint);

}  // namespace lockstep::report
