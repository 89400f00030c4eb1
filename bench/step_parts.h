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

/// Medians in seconds. forward ends when the last microshard has its loss; where threads do whole microshards
/// one after the other (no batch norm), some of them are then long in their backward pass, and forward holds
/// that too.
struct StepParts {
  double refresh = 0, forward = 0, backward = 0, reduction = 0, control = 0, update = 0;
};

/// All ranks. Makes an executor of its own, so variables move on.
StepParts measure_parts(ExecutorContext context, Communicator& gradients, Communicator& control,
                        const Dataset& dataset, const StepPlan& plan, const Optimizer& optimizer,
                        Workers& workers, int steps);

}  // namespace lockstep
