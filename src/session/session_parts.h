// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What a session works with. All of it outlives the session.
#pragma once

#include <cstdint>
#include <string_view>

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
  /// Whether a number of the step or of an evaluation is reported.
  bool is_reported(std::string_view name) const {
    if (name == "accuracy") return accuracy;
    return part_accuracy || !is_accuracy(name);
  }
};

}  // namespace lockstep
