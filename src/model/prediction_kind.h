// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace lockstep {

/// What a loss's predictions are.
enum class PredictionKind {
  classes,  ///< probabilities of classes that exclude one another (softmax)
  labels,   ///< each number the probability of a label of its own (sigmoid)
  values,   ///< numbers
};

}  // namespace lockstep
