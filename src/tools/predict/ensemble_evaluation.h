// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The evaluation of an ensemble: loss and metrics of the averaged predictions of its members.
#pragma once

#include <vector>

#include "run/jobs/evaluation_job.h"
#include "tools/predict/predict_members.h"

namespace lockstep {

/// All ranks. The evaluation set, the losses and the metrics are those of the first member. Throws
/// SharedError.
EvaluationOutcome evaluate_ensemble(CommEnvironment& environment, const std::vector<MemberTarget>& targets,
                                    bool averages);

}  // namespace lockstep
