// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The evaluation of an ensemble: loss and metrics of the averaged predictions of its members, or of views of
// each sample.
#pragma once

#include <vector>

#include "run/jobs/evaluation_job.h"
#include "tools/predict/predict_members.h"

namespace lockstep {

/// All ranks. The evaluation set, the losses and the metrics are those of the first member. With
/// `augmentations` above 1, predictions are also averaged over so many views of each sample, of one member
/// (augmented_views.h). Throws SharedError.
EvaluationOutcome evaluate_ensemble(CommEnvironment& environment, const std::vector<MemberTarget>& targets,
                                    bool averages, std::int64_t augmentations = 1);

}  // namespace lockstep
