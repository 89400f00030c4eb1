// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// How many epochs and samples a run has done at each step (core/run_clock.h), also where it continues with
// other batches or data.
#pragma once

#include "core/run_clock.h"
#include "data/step_plan.h"
#include "io/checkpoint.h"

namespace lockstep {

EpochShape epoch_shape(const StepPlan& plan);

/// The clock of a run with this plan. `continues`: the header of the checkpoint that it continues from; null:
/// none. Where batches or epochs of the plan are others than before, a new period begins at the checkpoint:
/// what is left of its epoch, and then whole epochs of the plan. Throws Error(checkpoint).
RunClock clock_of_run(const StepPlan& plan, const CheckpointHeader* continues);

}  // namespace lockstep
