// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Where a training step's time goes, seen from this rank: the steps of driver/trainer.h, taken apart.
#pragma once

#include "driver/executor.h"
#include "driver/workers.h"
#include "io/dataset.h"
#include "io/step_plan.h"
#include "optim/optimizer.h"

namespace lockstep {

/// Medians in seconds.
struct StepParts {
  double refresh = 0, forward = 0, backward = 0, reduction = 0, control = 0, update = 0;
};

/// All ranks; one thread each, as the passes of several overlap. Makes an executor of its own, so variables
/// move on.
StepParts measure_parts(ExecutorContext context, Communicator& gradients, Communicator& control,
                        const Dataset& dataset, const StepPlan& plan, const Optimizer& optimizer,
                        Workers& workers, int steps);

}  // namespace lockstep
