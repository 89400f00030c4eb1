// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Values that plugins of TensorBoard show: texts, tensors, PR curves, hyper-parameters.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "io/summary_value.h"

namespace lockstep {

/// Markdown. Several texts become the rows of a table.
SummaryValue text_value(std::string_view tag, std::string text);
SummaryValue text_value(std::string_view tag, std::vector<std::string> texts);
/// Texts in a row-major table with this number of columns.
SummaryValue text_table_value(std::string_view tag, std::vector<std::string> texts, std::int64_t columns);

/// Row-major. No page of TensorBoard shows it; programs read it.
SummaryValue tensor_value(std::string_view tag, std::span<const float> values,
                          std::vector<std::int64_t> shape);
SummaryValue tensor_value(std::string_view tag, std::span<const std::int64_t> values,
                          std::vector<std::int64_t> shape);

/// Counts at the thresholds i / (n - 1): cases whose score is at least the threshold are taken as positive.
struct PrCurveCounts {
  std::vector<double> tp, fp, tn, fn;  ///< of equal size n >= 2
};
/// The tag is `name/pr_curves`.
SummaryValue pr_curve_value(std::string_view name, const PrCurveCounts& counts);

/// One session (a run) of the page HParams. Numbers, booleans or texts by name.
using HParam = std::variant<double, bool, std::string>;
struct HParamsSession {
  std::vector<std::pair<std::string, HParam>> values;
  /// Tags of scalars to compare, each with the folder below the run ("eval", or empty).
  std::vector<std::pair<std::string, std::string>> metrics = {};
  std::string group = {};  ///< runs of one group are averaged; empty: each is its own
  double start_seconds = 0;
};
/// Written at the start: what the columns are, and the values of this run.
std::vector<SummaryValue> hparams_start(const HParamsSession& session);
/// The numbers are TensorBoard's: do not change.
enum class HParamsStatus { unknown = 0, success = 1, failure = 2, running = 3 };
SummaryValue hparams_end(HParamsStatus status, double end_seconds);

}  // namespace lockstep
