// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// ROC and precision-recall curves as SVG, with their areas in a table.
#pragma once

#include <string>
#include <vector>

#include "view/report/predictions.h"

namespace lockstep::report {

std::string score_pictures(const std::vector<ScoreCurve>& curves);

}  // namespace lockstep::report
