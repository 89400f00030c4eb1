// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What a sweep does, from its configuration: its trials with their settings and configurations, and the
// rungs. No files, no MPI.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "run/sections/config.h"
#include "tools/sweep/trials.h"

namespace lockstep {

struct SweepPlan {
  Config base;
  SweepOptions options;
  std::vector<std::vector<KeySetting>> trials;
  std::vector<Rung> rungs;
  bool in_epochs = false;  ///< the unit of the rungs

  const char* unit() const { return in_epochs ? "epochs" : "steps"; }
  /// "1 epoch", of a rung that has an end.
  std::string end_text(const Rung& rung) const;
};

/// Throws Error(config) for a configuration without a section sweep, for a sweep of parameter servers, and if
/// no trial has a configuration that can be read.
SweepPlan sweep_plan(Config base);

/// The configuration of a trial: that of the sweep with its settings and without its section sweep, so that
/// `lockstep train` would do the same with it. `shards` is for a configuration that does not say it. Throws
/// Error(config).
Config trial_config(const SweepPlan& plan, std::size_t trial, std::int64_t shards);

/// The configuration of the sweep as sweep.yaml has it.
std::string sweep_text(const SweepPlan& plan, std::int64_t shards);

}  // namespace lockstep
