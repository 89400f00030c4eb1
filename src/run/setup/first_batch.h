// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The first samples of a training set on their way to the model: what transforms and losses refuse of them is
// found before a step is computed.
#pragma once

#include "data/step_plan.h"
#include "data/used_dataset.h"

namespace lockstep {

/// Fetches some samples of the first batch as training does, with random transforms and labels. Nothing is
/// done for a set that still needs the numbers of a training set. Throws what fetching throws.
void try_first_batch(const UsedDataset& data, const StepPlan& plan);

}  // namespace lockstep
