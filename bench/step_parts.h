// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The parts of a training step (train/trainer.h) and their times on this rank.
#pragma once

#include "data/dataset.h"
#include "data/step_plan.h"
#include "optim/optimizer.h"
#include "train/executor.h"
#include "train/workers.h"

namespace lockstep {

/// Medians in seconds.
struct StepParts {
  double refresh = 0, forward = 0, backward = 0, reduction = 0, control = 0, update = 0;
};

/// All ranks; one thread each, since the passes of several threads overlap. Creates its own executor and
/// trains the variables further.
StepParts measure_parts(ExecutorContext context, Communicator& gradients, Communicator& control,
                        const Dataset& dataset, const StepPlan& plan, Optimizer& optimizer, Workers& workers,
                        int steps);

}  // namespace lockstep
