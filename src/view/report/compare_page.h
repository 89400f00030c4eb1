// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep compare`: the page of several runs, and its summary as text.
#pragma once

#include <string>
#include <vector>

#include "view/report/page.h"
#include "view/report/parting.h"
#include "view/report/report_run.h"

namespace lockstep::report {

/// The first run, and each other one.
struct Comparison {
  std::vector<ReportRun> runs;
  std::vector<Parting> partings;  ///< of runs[0] and runs[i + 1]
};
/// Reads the runs; names that several have are replaced by paths. Throws what read_report_run() throws.
Comparison compare_runs(const std::vector<std::string>& dirs, double now);

Page compare_page(const Comparison& comparison);
std::string compare_text(const Comparison& comparison);

}  // namespace lockstep::report
