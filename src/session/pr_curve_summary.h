// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The curves of an evaluation's metrics as TensorBoard shows them.
#pragma once

#include <string>
#include <vector>

#include "io/summary_value.h"
#include "model/metric.h"

namespace lockstep {

/// The summaries of a table `curve` (auc_roc, auc_pr): `name`/pr_curves, or `name`/class_0/pr_curves and so
/// on where there are several.
std::vector<SummaryValue> pr_curve_summaries(const std::string& name, const MetricTable& table);

}  // namespace lockstep
