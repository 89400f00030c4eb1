// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace lockstep {

/// What the predictions of a loss mean.
enum class PredictionKind {
  classes,  ///< probabilities of exclusive classes (softmax)
  labels,   ///< each number is the probability of one label (sigmoid)
  values,   ///< plain numbers
};

}  // namespace lockstep
