// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "io/prediction_file.h"

namespace lockstep {

struct Head;
class OutputUnits;

/// What the numbers of a head are, without spread and labels. `class_names`: of the data.
PredictedHead predicted_head(const Head& head, const std::vector<std::string>& class_names,
                             const OutputUnits& units);

}  // namespace lockstep
