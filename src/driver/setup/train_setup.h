// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// From the configuration to the options of training.
#pragma once

#include "data/step_plan.h"
#include "driver/setup/run_context.h"
#include "train/trainer.h"

namespace lockstep {

/// How the model's values and gradients are held.
ModelStorage model_storage(const Config& config);
/// The plan of training.
StepPlanSpec step_plan_spec(const RunContext& context);
TrainerOptions trainer_options(RunContext& context);

}  // namespace lockstep
