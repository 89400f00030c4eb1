// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/young_averages.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/name_list.h"
#include "model/collective_layer.h"
#include "model/moving_statistics.h"

namespace lockstep {

namespace {

constexpr double kYoung = 0.05, kGrown = 0.01;  ///< shares of the initial value

/// What n updates that each keep `share` leave of the initial value.
double left(double share, std::int64_t updates) { return std::pow(share, static_cast<double>(updates)); }

/// A share with two digits of which n updates leave less than kGrown.
double better_share(std::int64_t updates) {
  constexpr double kDigits = 100;
  return std::floor(std::pow(kGrown, 1 / static_cast<double>(updates)) * kDigits) / kDigits;
}

std::string of_statistics(const Graph& graph, std::int64_t steps) {
  std::vector<std::string> layers;
  double most = 0;
  for (const Graph::Node& node : graph.nodes()) {
    const auto* const statistics = dynamic_cast<const MovingStatistics*>(node.layer.get());
    const auto* const collective = dynamic_cast<const CollectiveLayer*>(node.layer.get());
    const bool fixed = !node.trainable || (collective != nullptr && !collective->synchronises());
    if (statistics == nullptr || fixed) continue;
    const double share = statistics->kept();
    if (left(share, steps) <= kYoung) continue;
    layers.push_back(node.layer->name());
    most = std::max(most, share);
  }
  if (layers.empty()) return {};
  return fmt::format(
      "{}: a run of {} steps with momentum {} leaves {:.0f} % of the moving statistics at their initial "
      "values, and evaluation normalises by them: give momentum: {}",
      name_list(layers), steps, most, 100 * left(most, steps), better_share(steps));
}

std::string of_variables(const AverageRule& rule, std::int64_t steps) {
  if (rule.kind != AverageRule::Kind::ema || rule.schedule != nullptr ||
      rule.start != AverageRule::Start::decay)
    return {};
  const std::int64_t updates = std::max<std::int64_t>(steps - rule.first, 0) / rule.every;
  const double share = static_cast<double>(rule.decay);
  if (updates == 0 || left(share, updates) <= kYoung) return {};
  return fmt::format(
      "average.ema: {} updates with decay {:.6g} leave {:.0f} % of the average at the variables it began "
      "with, and evaluation uses it: give num_updates: true, or decay: {}",
      updates, share, 100 * left(share, updates), better_share(updates));
}

}  // namespace

std::vector<std::string> young_averages(const Graph& graph, const std::optional<AverageRule>& average,
                                        const RunLength& run) {
  std::vector<std::string> warnings;
  if (!run.warm && run.steps > 0) warnings.push_back(of_statistics(graph, run.steps));
  if (average && run.steps > 0) warnings.push_back(of_variables(*average, run.steps));
  std::erase(warnings, std::string());
  return warnings;
}

}  // namespace lockstep
