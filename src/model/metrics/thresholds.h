// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Thresholds of probabilities: one for all labels, or one per label. A label is predicted if its probability
// is strictly above the threshold, both as float32.
#pragma once

#include <vector>

#include "config/params.h"

namespace lockstep {

inline constexpr std::string_view kThresholdHelp =
    "A label is predicted if its probability is above this: one number, or one per label.";

/// One threshold per column. Throws Error(config) if `given` has neither one number nor `columns`.
std::vector<float> thresholds_of(const Params& params, std::string_view option,
                                 const std::vector<double>& given, std::int64_t columns);

}  // namespace lockstep
