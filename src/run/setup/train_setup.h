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
#include "train/device_functions.h"

namespace lockstep {

class DistributedState;
class Optimizer;
class Ownership;
class RunSchedules;
class Trainer;
struct RunNames;
struct CheckpointHeader;
struct ScheduleRun;
struct TrainerOptions;

/// The spec of training's plan, without shards and seed.
StepPlanSpec order_of_samples(const Config& config, const UsedDataset& data);
StepPlanSpec step_plan_spec(const RunContext& context);
TrainerOptions trainer_options(RunContext& context);

/// How gradients are added on the CPU or on a GPU, without what the sharing of the update adds. `direct`:
/// ReducerDevice's.
GradientSum gradient_sum(const CommunicationOptions& comm, bool on_gpu,
                         std::shared_ptr<DeviceCommunicator> direct);

/// What schedules may know of the run.
ScheduleRun schedule_run(const Config& config, const RunClock& clock);
/// Begins the schedules; warns if `warns` is set of those that the run does not need. Throws Error(config)
/// with position.
void begin_schedules(const Config& config, const RunClock& clock, RunSchedules& schedules, bool warns);

/// A trainer with all that it uses. It stands before step 1; the variables are as in the context.
struct TrainerSetup {
  /// All ranks. `names`: what evaluations give schedules; null: a step is replayed, with what the run
  /// checked. `device_fn`: of a program, where servers hold the variables. `continues`: the header of the
  /// checkpoint that the run continues from; null: none. `context` outlives it. Throws Error(config).
  TrainerSetup(RunContext& context, const RunNames* names, const DeviceFunction& device_fn = {},
               const CheckpointHeader* continues = nullptr);
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

/// The trainer of a program with a loop of its own: no session, so there are no hooks, evaluations,
/// checkpoints or summaries, and no run directory. All ranks. Throws Error(config), also for a schedule that
/// follows evaluations.
std::unique_ptr<TrainerSetup> make_trainer(RunContext& context, const DeviceFunction& device_fn = {});

}  // namespace lockstep
