// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "optim/average_progress.h"

#include <algorithm>

namespace lockstep {

AverageProgress AverageProgress::beginning(const AverageRule& rule, std::int64_t step) {
  const std::int64_t first = std::max(step, rule.first);
  return {.first = first, .updates = 0, .last = first};
}

AverageProgress AverageProgress::at(const AverageRule& rule, std::int64_t step) {
  const std::int64_t updates = std::max<std::int64_t>(step - rule.first, 0) / rule.every;
  return {.first = rule.first, .updates = updates, .last = rule.first + updates * rule.every};
}

std::optional<float> AverageProgress::next_weight(const AverageRule& rule, std::int64_t step) {
  if (!has_begun(step) || (step - rule.phase.value_or(last)) % rule.every != 0) return std::nullopt;
  last = step;
  return rule.weight(++updates, step);
}

}  // namespace lockstep
