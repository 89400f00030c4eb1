// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// From the configuration to the options of training.
#pragma once

#include "data/step_plan.h"
#include "driver/setup/run_context.h"
#include "train/trainer.h"

namespace lockstep {

/// How the model's values and gradients are held. `updates`, `memory_bytes`: see ModelStorage.
ModelStorage model_storage(const Config& config, bool updates, int ranks, double memory_bytes);
/// The plan of training.
StepPlanSpec step_plan_spec(const RunContext& context);
TrainerOptions trainer_options(RunContext& context);
/// What schedules may know of the run.
ScheduleRun schedule_run(const Config& config, const StepPlan& plan);
/// Begins the schedules; warns if `warns` is set of those that the run does not need. Throws Error(config)
/// with position.
void begin_schedules(const Config& config, const StepPlan& plan, RunSchedules& schedules, bool warns);

}  // namespace lockstep
