// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Several sets as one: the samples of the first, then those of the second, and so on.
#pragma once

#include <vector>

#include "data/opened_samples.h"

namespace lockstep {

/// Throws Error(data) if samples differ in shape, type, labels or scaling.
OpenedSamples chained(std::vector<OpenedSamples> sets);

}  // namespace lockstep
