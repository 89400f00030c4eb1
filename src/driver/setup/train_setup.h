// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What the configuration says about the step, for whoever runs steps: train, and replay.
#pragma once

#include "driver/setup/run_context.h"
#include "train/trainer.h"

namespace lockstep {

/// Which samples each step of the run uses.
StepPlanSpec step_plan_spec(const RunContext& session);
/// How gradients are summed. Warns if what the configuration wants is not possible here.
TrainerOptions trainer_options(RunContext& session);

}  // namespace lockstep
