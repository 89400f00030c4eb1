// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What a call of Estimator::train() runs.
#pragma once

#include "run/jobs/training_job.h"
#include "run/sections/config.h"

namespace lockstep {

struct TrainingCall {
  Config config;
  TrainingJob job;
};

}  // namespace lockstep
