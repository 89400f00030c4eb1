// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Steps of training that are tried and thrown away: `lockstep lr-find`, `lockstep check --overfit-batch`. A
// trial begins as a run of the configuration does, with its warm start, and computes its steps with the same
// bits on any number of ranks and threads. It has no run directory, no session and no hooks, and writes no
// file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "optim/loss_scale.h"
#include "train/step_result.h"

namespace lockstep {

class CommEnvironment;
class RunContext;
struct Config;
struct TrainerSetup;

class TrialTraining {
 public:
  /// All ranks. The schedules of the configuration end after `steps` steps. Throws SharedError.
  TrialTraining(CommEnvironment& environment, const Config& config, std::int64_t steps);
  ~TrialTraining();
  TrialTraining(const TrialTraining&) = delete;
  TrialTraining& operator=(const TrialTraining&) = delete;

  /// The next step. Where gradients overflow under a loss scale, its update is left out. All ranks; the same
  /// result on all.
  StepResult step();
  /// A step on the first batch of the first epoch, as it is transformed there.
  StepResult step_on_first_batch();

  bool is_chief() const;

 private:
  std::unique_ptr<RunContext> context_;
  std::unique_ptr<TrainerSetup> setup_;
  LossScale scale_;
  LossScaleState scale_now_;
};

/// The configuration for a trial of `steps` steps: `overrides` are applied, and its length is `steps`.
Config trial_config(const Config& config, std::int64_t steps, std::vector<std::string> overrides = {});

}  // namespace lockstep
