// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What follows for a training run from its configuration, its data and its model, before anything is
// computed: the order of its samples, the update rule, schedules, the names that hooks may use. `lockstep
// train` and `lockstep check` call one function for it, so that one refuses what the other refuses.
#pragma once

#include <memory>

#include "core/run_clock.h"
#include "data/step_plan.h"
#include "io/checkpoint.h"
#include "optim/optimizer.h"
#include "run/sections/config.h"
#include "session/run_names.h"
#include "train/model.h"
#include "train/run_schedules.h"

namespace lockstep {

struct RunPlan {
  RunNames names;
  StepPlan steps;
  RunClock clock;                           ///< epochs and samples done at each step
  std::unique_ptr<Optimizer> optimizer;     ///< without slots
  std::unique_ptr<RunSchedules> schedules;  ///< they have begun
  bool is_replay = false;                   ///< of a step that a run has computed
};

struct RunPlanOptions {
  int shards = 1;
  bool on_gpu = false;
  bool records = false;     ///< steps are to be recorded
  bool has_session = true;  ///< there are hooks, evaluations and checkpoints; false: a program's own loop
  bool logs_warnings = true;
  const CheckpointHeader* continues = nullptr;  ///< of the checkpoint that the run continues from; null: none
};

/// No communication. Throws Error(config) with position for what does not go together. `model`, `train` and
/// `eval` (may be without data) outlive the result. `optimizer`: the one that the model was made for.
RunPlan plan_run(const Config& config, const Model& model, const UsedDataset& train, const UsedDataset& eval,
                 std::unique_ptr<Optimizer> optimizer, const RunPlanOptions& options);

/// The plan of a step that is computed again: without averages and without the checks that its run has
/// passed. `state`: of the checkpoint before it.
RunPlan plan_replay(const Config& config, const Model& model, const UsedDataset& train,
                    std::unique_ptr<Optimizer> optimizer, int shards, const CheckpointHeader* state);

/// What schedules may know of the run.
ScheduleRun schedule_run(const Config& config, const RunClock& clock);

/// An update of servers takes at most as many parts as a batch has. Throws Error(config) with position.
void check_aggregate(const Config& config, int parts);

}  // namespace lockstep
