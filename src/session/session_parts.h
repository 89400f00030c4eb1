// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What a session works with. All of it outlives the session.
#pragma once

#include "comm/communicator.h"
#include "model/variable_store.h"
#include "optim/optimizer.h"
#include "session/run_reports.h"
#include "train/trainer.h"

namespace lockstep {

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
