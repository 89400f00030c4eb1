// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/pr_curve_summary.h"

#include <fmt/format.h>

#include "io/summary_plugins.h"
#include "model/metrics/score_curves.h"

namespace lockstep {

std::vector<SummaryValue> pr_curve_summaries(const std::string& name, const MetricTable& table) {
  const auto rows = table.values.size() / kCurveTableColumns;
  std::vector<PrCurveCounts> curves;
  for (std::size_t row = 0; row < rows; ++row) {
    const double* const at = table.values.data() + row * kCurveTableColumns;
    const auto column = static_cast<std::size_t>(at[0]);
    if (column >= curves.size()) curves.resize(column + 1);
    curves[column].tp.push_back(at[2]);
    curves[column].fp.push_back(at[3]);
    curves[column].tn.push_back(at[4]);
    curves[column].fn.push_back(at[5]);
  }
  std::vector<SummaryValue> values;
  for (std::size_t column = 0; column < curves.size(); ++column)
    if (curves[column].tp.size() >= 2)
      values.push_back(pr_curve_value(curves.size() == 1 ? name : fmt::format("{}/class_{}", name, column),
                                      curves[column]));
  return values;
}

}  // namespace lockstep
