// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The trials of a sweep, and which of them go on after a rung. Pure functions of the options and of what
// trials have given: the same on all ranks, whatever ranks there are and however often the sweep was ended.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "run/sections/sweep_options.h"

namespace lockstep {

/// The settings of each trial, in the order of their numbers.
std::vector<std::vector<KeySetting>> trials_of(const SweepOptions& options);
/// The keys of all trials, in the order in which they appear.
std::vector<std::string> keys_of(const std::vector<std::vector<KeySetting>>& trials);

/// A part of the sweep, after which trials are compared.
struct Rung {
  /// Where its trials stop, in steps or epochs; none: at the end of the training.
  std::optional<std::int64_t> end = {};
  std::int64_t trials = 0;  ///< at most
  bool operator==(const Rung&) const = default;
};
/// `last`: where the training ends, in the same unit. When one trial is left it trains to the end.
std::vector<Rung> rungs_of(const SweepOptions& options, std::int64_t trials, std::int64_t last);

/// What a trial has given at the end of a rung.
struct RungResult {
  std::int64_t step = 0;
  double value = 0;    ///< of the metric; finite
  std::string digest;  ///< of the checkpoint
  bool operator==(const RungResult&) const = default;
};

struct TrialRecord {
  std::vector<RungResult> results = {};  ///< by rung
  std::string error = {};                ///< not empty: the trial has failed
  bool operator==(const TrialRecord&) const = default;
};

/// The trials of a rung, in the order of their numbers; all trials of the rung before it have a result or an
/// error. The best results of that rung; of equal ones the lower numbers.
std::vector<std::size_t> members_of(const std::vector<TrialRecord>& records, const std::vector<Rung>& rungs,
                                    std::size_t rung, bool larger_is_better);
/// The best trial of the last rung that has results; none if all have failed.
std::optional<std::size_t> best_trial(const std::vector<TrialRecord>& records, bool larger_is_better);

}  // namespace lockstep
