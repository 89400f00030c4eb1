// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Finds moving averages that are still close to their initial values when the run ends: moving statistics of
// batch norms, and the average of the variables. Evaluations use both. Known from the options and the length
// of the run before the first step.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/graph.h"
#include "optim/average_rule.h"

namespace lockstep {

struct RunLength {
  std::int64_t steps = 0;
  bool warm = false;  ///< the statistics begin with those of another run
};

/// A warning for each kind of average that has kept more than a twentieth of its initial value after the run,
/// with options that leave less than a hundredth.
std::vector<std::string> young_averages(const Graph& graph, const std::optional<AverageRule>& average,
                                        const RunLength& run);

}  // namespace lockstep
