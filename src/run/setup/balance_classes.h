// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// class_weights: balanced. A new run counts the labels of its training set, which the ranks share; everything
// later takes the numbers that the run keeps.
#pragma once

#include "comm/communicator.h"
#include "data/used_dataset.h"
#include "model/heads.h"
#include "run/setup/run_needs.h"

namespace lockstep {

/// Gives the counts to the losses that need them. `train`: a set with samples, or null. All ranks. Throws
/// SharedError.
void balance_classes(Communicator& world, const Heads& heads, const UsedDataset& train, const RunNeeds& needs,
                     Device& device);

/// A run goes on with another training set: warns of counts that are no longer those of the set, since the
/// losses keep them. All ranks. Throws SharedError.
void compare_class_counts(Communicator& world, const Heads& heads, const UsedDataset& train);

}  // namespace lockstep
