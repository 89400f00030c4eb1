// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The rules that decide which checkpoints of a run are kept. Arithmetic only, no files.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

struct RetentionRules {
  int keep = 5;                 ///< number of newest ones; 0: all
  double keep_every_hours = 0;  ///< preserve one per this many hours; 0: none
  int keep_best = 0;            ///< number of best ones by the metric, in addition
  bool larger_is_better = false;
};

/// A checkpoint in the run directory.
struct KeptCheckpoint {
  std::int64_t step = 0;
  std::string path;
  double time = 0;                    ///< of writing, seconds since 1970
  std::optional<double> metric;       ///< if known
  bool preserved = false;             ///< kept permanently by keep_every_hours
  bool recent = false, best = false;  ///< other reasons to keep it; set by apply_retention()
  bool stays() const { return preserved || recent || best; }
};

/// Sets `recent`, `best` and `preserved` of `all`, which is in the order of writing and ends with the newest:
///
///   - recent: the last `keep` of those that are not preserved; the last of `all` in any case.
///   - preserved: one that is no longer recent and was written `keep_every_hours` or more after the last
///     preserved one. Its time becomes `last_preserved`.
///   - best: the `keep_best` best of those with a metric; of equal ones the older.
void apply_retention(std::span<KeptCheckpoint> all, const RetentionRules& rules, double& last_preserved);

/// The best of those with a metric, the older of equal ones; null: none has one. `all` is in the order of
/// writing.
const KeptCheckpoint* best_of(std::span<const KeptCheckpoint> all, bool larger_is_better);

}  // namespace lockstep
