// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What a training step of ResNet-20 cannot be faster than: its convolutions, forward and both backwards, one
// after the other as in a step, nothing between them.
#pragma once

#include <vector>

#include "driver/workers.h"

namespace lockstep {

/// Seconds of `repeats` passes over `microshards` microshards of n samples, shared among the workers' threads
/// as in a step. Packing of weights is not in it.
std::vector<double> seconds_of_convolutions(Workers& workers, std::int64_t n, std::int64_t microshards,
                                            int repeats);

}  // namespace lockstep
