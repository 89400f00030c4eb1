// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep report`: the page of one run, and its summary as text.
#pragma once

#include <string>

#include "view/report/page.h"
#include "view/report/predictions.h"
#include "view/report/report_run.h"

namespace lockstep::report {

Page report_page(const ReportRun& run, const PredictionLimits& limits);
std::string report_text(const ReportRun& run);

/// The section of curves, with its controls.
Section curves_section(const std::vector<CurveChart>& charts, const std::vector<CurveRun>& runs);

}  // namespace lockstep::report
