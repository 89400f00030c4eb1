// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal to Trainer: its parts, in the order in which they use each other.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "comm/self_communicator.h"
#include "optim/regularizer.h"
#include "train/dataset_batch_source.h"
#include "train/executor.h"
#include "train/gradients.h"
#include "train/kept_statistics.h"
#include "train/step_engine.h"
#include "train/step_numbers.h"
#include "train/step_sums.h"
#include "train/step_update.h"
#include "train/trainer.h"
#include "train/variable_fingerprint.h"

namespace lockstep {

struct Trainer::Parts {
  Parts(const ExecutorContext& run, Communicator& gradients, Communicator& control, const Dataset& dataset,
        const StepPlan& plan, Optimizer& optimizer, const TrainerOptions& options);

  ExecutorContext context;
  Communicator& control;
  const StepPlan& plan;
  std::unique_ptr<SelfCommunicator> part_ranks;  ///< of parts of a batch; null: there are no servers
  Executor executor;
  DatasetBatchSource source;
  Regularizer regularizer;
  StepNumbers numbers;
  StepSums sums;
  StepUpdate update;
  std::unique_ptr<StepEngine> engine;
  KeptStatistics kept;  ///< from before the step, or before their computation
  VariableFingerprint fingerprint;

  StepPosition position;
  std::optional<Batch> last;             ///< of the step before
  std::optional<StepResult> computed;    ///< a step without its apply()
  std::unique_ptr<Gradients> gradients;  ///< null: never asked for
  bool shown = false;                    ///< gradients() was called in the step
  bool statistics_fit = false;  ///< the average's moving statistics are those of its present variables
  Gating gating;
  std::string gating_reason;
  AbandonOnError abandon_on_error;  ///< before the buffers above are freed
};

}  // namespace lockstep
