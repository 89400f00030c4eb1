// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The arguments of `lockstep check`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

struct CheckArguments {
  std::string config;
  bool expand = false;  ///< print the layers that blocks stand for, and nothing else
  bool plot_schedule = false;
  std::string schedule_svg;  ///< with plot_schedule: the file to write; empty: draw in the terminal
  std::string run_dir;       ///< empty: runs/<name of the configuration>; the run in it is not looked at
  std::vector<std::string> overrides;
  bool accept_changes = false;       ///< of the run in run_dir
  bool overfit_batch = false;        ///< also train on one batch; all ranks
  std::int64_t overfit_steps = 200;  ///< at most
};

/// Trains on the first batch and prints whether its loss falls to about 0. All ranks, with MPI. Returns the
/// exit code: 0 if it does, otherwise 1.
int overfit_batch(const CheckArguments& arguments);

}  // namespace lockstep
