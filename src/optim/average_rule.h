// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The section `average` of a configuration: which average of the variables a run keeps in addition to them. A
// rule says, for each step, how much of the variables enters the average: average += weight * (variable -
// average), in float32. The weight depends on the number of updates of the average, and on the step where the
// decay follows a schedule.
//
// - ema, exponential moving average with decay d: weight 1 - d. With num_updates the decay of update n is
//   min(d, (1 + n) / (10 + n)). With zero_debias the weight of update n is (1 - d) / (1 - d^n), which gives
//   the average that begins with 0 and is divided by 1 - d^n.
// - swa, the mean of the variables at the start of the average and after each update: weight 1 / (n + 1).
//   Izmailov et al. 2018, arXiv:1803.05407.
//
// Until it begins, and when it begins, the average is the variables.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "config/params.h"
#include "config/table.h"
#include "core/run_clock.h"
#include "optim/scheduled_number.h"

namespace lockstep {

struct AverageRule {
  enum class Kind { ema, swa };
  enum class Start { decay, num_updates, zero_debias };  ///< the first weights of ema
  Kind kind = Kind::ema;
  float decay = 0;  ///< unless it follows a schedule
  /// The decay's schedule, which RunSchedules begins; null: there is none.
  std::shared_ptr<ScheduledNumber> schedule = {};
  Start start = Start::decay;
  std::int64_t first = 0;  ///< global step after which the average begins
  std::int64_t every = 1;  ///< global steps between two updates
  /// Where epochs lie: an update follows a step that is this one, or whole updates away; none: as `first`.
  std::optional<std::int64_t> phase = {};
  std::string begins;  ///< as it is written: "epoch 3"
  /// The moving statistics that go with the average: those of the variables after the last step; their own
  /// average; or those of the averaged variables, computed anew from `batches` batches of the training data
  /// (0: an epoch) where the average is used.
  enum class Statistics { last, average, recompute };
  Statistics statistics = Statistics::last;
  std::int64_t batches = 0;

  bool recomputes() const { return statistics == Statistics::recompute; }

  /// The rule in words: "exponential, decay 0.999, from step 0 on, after every step".
  std::string describe() const;
  /// The decay of the update after global step `step`.
  float decay_at(std::int64_t step) const;
  /// The weight in (0, 1] of update `update`, from 1, which follows global step `step`.
  float weight(std::int64_t update, std::int64_t step) const;
};

/// The section as written: first and every may be in epochs.
struct AverageOptions {
  AverageRule rule;
  std::optional<std::int64_t> first_epoch = {}, every_epochs = {};
  /// The rule with `first` and `every` in steps.
  AverageRule resolved(const RunClock& clock) const;
};

struct AverageEntry {
  std::string_view name, help;
  std::span<const ParamSpec> table;
  AverageOptions (*make)(const Params&);
};
/// Lockstep's own averages, then those that add() added.
Table<AverageEntry>& average_table();

/// `node`: null (none), a name, or a map of one name to its options. Throws Error(config) with position.
std::optional<AverageOptions> average_options(const Node& node);

}  // namespace lockstep
