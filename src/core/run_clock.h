// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// How many epochs and samples a run has done at a step. In a run whose batches and data never change, that
// follows from the step alone. In one that was continued with another batch size or with more data, each
// period since a change has its own lengths: epochs and samples that are done stay done.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace lockstep {

/// The lengths of an epoch, and of a batch in samples.
struct EpochShape {
  std::int64_t steps = 0, samples = 0, batch = 0;
  friend bool operator==(const EpochShape&, const EpochShape&) = default;
};

class RunClock {
 public:
  /// It counts steps alone: the length of an epoch is not known.
  RunClock() = default;
  /// Of a run with this shape from its first step on.
  explicit RunClock(const EpochShape& shape);

  bool knows_epochs() const { return !periods_.empty(); }
  /// The present one.
  const EpochShape& shape() const { return periods_.back().shape; }
  /// The first step of the present period: 0 if nothing changed.
  std::int64_t changed_at() const { return periods_.empty() ? 0 : periods_.back().step; }

  /// Epochs done at global step `step`, as s / (steps of an epoch); a whole number at the end of an epoch.
  double epochs(std::int64_t step) const;
  /// Samples used at global step `step`.
  double samples(std::int64_t step) const;
  /// The global step after which `epochs` epochs are done.
  std::int64_t step_of_epoch(std::int64_t epochs) const;

  /// What is left of an epoch that is in progress.
  struct Rest {
    std::int64_t steps = 0, samples = 0;
  };
  /// From global step `step` on epochs have another shape. `epochs` are done when `rest` is: those that are
  /// done now, and the one in progress.
  void change(std::int64_t step, std::int64_t epochs, Rest rest, const EpochShape& shape);

  /// A line for each period. On-disk form: do not change.
  std::string text() const;
  /// Of text(). Throws Error(checkpoint) with `where` for another text.
  static RunClock parse(std::string_view text, const std::string& where);

  friend bool operator==(const RunClock&, const RunClock&) = default;

 private:
  struct Period {
    std::int64_t step = 0, samples = 0;  ///< where it begins
    /// Its first end of an epoch: the step, the epochs and the samples that are done then.
    std::int64_t end_step = 0, end_epochs = 0, end_samples = 0;
    EpochShape shape;
    friend bool operator==(const Period&, const Period&) = default;
  };
  std::size_t period_at(std::int64_t step) const;
  double epochs_in(std::size_t index, std::int64_t step) const;

  std::vector<Period> periods_;  ///< ascending; empty: epochs are not known
};

}  // namespace lockstep
