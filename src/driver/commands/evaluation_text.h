// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// An evaluation as `lockstep evaluate` and `lockstep watch` print it.
#pragma once

#include <string>

#include "run/jobs/evaluation_job.h"

namespace lockstep {

/// One line of JSON; NaN and infinities are null.
std::string evaluation_text(const EvaluationOutcome& outcome);

}  // namespace lockstep
