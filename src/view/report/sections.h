// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The sections of a report, one file each. Each says what is missing where a run has nothing to show.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "view/report/html.h"
#include "view/report/report_run.h"

namespace lockstep::report {

struct NetworkView;  // network_view.h
struct Predictions;  // predictions.h

Section headline_section(const ReportRun& run);
Section configuration_section(const ReportRun& run);
Section network_section(const ReportRun& run, const NetworkView& network);
Section throughput_section(const ReportRun& run);
Section evaluation_section(const ReportRun& run, const Predictions& predictions);
Section summaries_section(const ReportRun& run);
Section mistakes_section(const Predictions& predictions);
Section checkpoints_section(const ReportRun& run);
Section timeline_section(const ReportRun& run);
Section log_section(const ReportRun& run);

/// The state as a word with a colour.
std::string state_badge(const RunProgress& progress);

/// A confusion matrix (rows: the label's class) as a heat map, with the pairs that are confused most.
std::string confusion_html(const std::vector<double>& counts, std::int64_t classes,
                           const std::vector<std::string>& names, const std::string& id);

}  // namespace lockstep::report
