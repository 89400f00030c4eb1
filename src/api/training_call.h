// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What a call of Estimator::train() runs.
#pragma once

#include <memory>

#include "api/local_samples.h"
#include "core/run_signals.h"
#include "run/jobs/training_job.h"
#include "run/sections/config.h"

namespace lockstep {

/// Lives as long as the training.
struct TrainingCall {
  Config config;
  TrainingJob job;
  GatheredInputs samples;
  std::unique_ptr<RunSignals> signals;
};

}  // namespace lockstep
