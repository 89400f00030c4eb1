// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/checkpoint_retention.h"

#include <algorithm>

namespace lockstep {

namespace {

constexpr double kSecondsPerHour = 3600;

void mark_best(std::span<KeptCheckpoint> all, const RetentionRules& rules) {
  std::vector<KeptCheckpoint*> candidates;
  for (KeptCheckpoint& checkpoint : all) {
    checkpoint.best = false;
    if (checkpoint.metric) candidates.push_back(&checkpoint);
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [&](const KeptCheckpoint* a, const KeptCheckpoint* b) {
                     return rules.larger_is_better ? *a->metric > *b->metric : *a->metric < *b->metric;
                   });
  const auto count = std::min(candidates.size(), static_cast<std::size_t>(rules.keep_best));
  for (std::size_t i = 0; i < count; ++i) candidates[i]->best = true;
}

}  // namespace

void apply_retention(std::span<KeptCheckpoint> all, const RetentionRules& rules, double& last_preserved) {
  mark_best(all, rules);
  int recent = 0;
  for (auto checkpoint = all.rbegin(); checkpoint != all.rend(); ++checkpoint) {
    checkpoint->recent =
        checkpoint == all.rbegin() || (!checkpoint->preserved && (rules.keep == 0 || recent < rules.keep));
    if (checkpoint->recent) ++recent;
  }
  if (rules.keep_every_hours <= 0) return;
  for (KeptCheckpoint& checkpoint : all)
    if (!checkpoint.recent && !checkpoint.preserved &&
        checkpoint.time - last_preserved >= rules.keep_every_hours * kSecondsPerHour) {
      checkpoint.preserved = true;
      last_preserved = checkpoint.time;
    }
}

const KeptCheckpoint* best_of(std::span<const KeptCheckpoint> all, bool larger_is_better) {
  const KeptCheckpoint* best = nullptr;
  for (const KeptCheckpoint& one : all)
    if (one.metric &&
        (best == nullptr || (larger_is_better ? *one.metric > *best->metric : *one.metric < *best->metric)))
      best = &one;
  return best;
}

}  // namespace lockstep
