// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The page of a sweep: a picture of its trials, their table, and the rungs.
#pragma once

#include <vector>

#include "tools/sweep/sweep_table.h"
#include "view/report/page.h"

namespace lockstep::report {

Page sweep_page(const SweepPlan& plan, const SweepTable& table, const std::vector<TrialRecord>& records);

}  // namespace lockstep::report
