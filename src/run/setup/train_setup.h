// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// From the configuration to the options of training.
#pragma once

#include <memory>

#include "comm/gradient_reducer.h"
#include "core/run_clock.h"
#include "data/step_plan.h"
#include "run/setup/run_context.h"
#include "run/setup/run_plan.h"
#include "train/device_functions.h"

namespace lockstep {

class DistributedState;
class Ownership;
class Trainer;
struct TrainerOptions;

TrainerOptions trainer_options(RunContext& context);

/// How gradients are added on the CPU or on a GPU, without what the sharing of the update adds. `direct`:
/// ReducerDevice's.
GradientSum gradient_sum(const CommunicationOptions& comm, bool on_gpu,
                         std::shared_ptr<DeviceCommunicator> direct);

/// A trainer with all that it uses. It stands before step 1; the variables are as in the context.
struct TrainerSetup {
  /// All ranks. `planned`: of this configuration, data and model. `device_fn`: of a program, where servers
  /// hold the variables. `context` outlives it. Throws Error(config).
  TrainerSetup(RunContext& context, RunPlan planned, const DeviceFunction& device_fn = {});
  TrainerSetup(const TrainerSetup&) = delete;  // parts refer to each other
  TrainerSetup& operator=(const TrainerSetup&) = delete;
  ~TrainerSetup();

  /// What of the optimizer's state only some ranks have, for checkpoints; null: each rank has all of it.
  std::unique_ptr<DistributedState> distributed_state(RunContext& context) const;

  StepPlan plan;
  RunClock clock;
  std::unique_ptr<Optimizer> optimizer;
  std::shared_ptr<const Ownership> ownership;  ///< null: each rank has all slots
  std::unique_ptr<RunSchedules> schedules;
  std::unique_ptr<Trainer> trainer;
};

/// plan_run() for a training run of the context. All ranks.
RunPlan plan_of_context(RunContext& context, RunPlanOptions options);

/// The trainer of a program with a loop of its own: no session, so there are no hooks, evaluations,
/// checkpoints or summaries. `run_dir` keeps measured algorithms; empty: nobody does. All ranks. Throws
/// Error(config), also for a schedule that follows evaluations.
std::unique_ptr<TrainerSetup> make_trainer(RunContext& context, const DeviceFunction& device_fn = {},
                                           const std::string& run_dir = "");

}  // namespace lockstep
