// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What a session works with. All of it outlives the session.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "core/run_clock.h"
#include "session/state_settings.h"
#include "train/step_metrics.h"

namespace lockstep {

class Communicator;
class Optimizer;
class RunReports;
class Trainer;
class VariableStore;

struct SessionParts {
  Communicator& control;  ///< for agreements, and for hooks that communicate
  Trainer& trainer;
  VariableStore& variables;
  const Optimizer& optimizer;
  RunReports& reports;
  int shards = 1;
  std::uint64_t seed = 0;
  bool accuracy = true;       ///< is reported with the loss
  bool part_accuracy = true;  ///< of each head, where there are several
  /// What a result of evaluations depends on, in addition to its name without "eval/"; empty: unknown.
  std::function<StateSettings(std::string_view metric)> evaluation_settings = {};
  RunClock clock = {};  ///< of the run
  /// Whether a number of the step or of an evaluation is reported.
  bool is_reported(std::string_view name) const {
    if (name == "accuracy") return accuracy;
    return part_accuracy || !is_accuracy(name);
  }
};

}  // namespace lockstep
