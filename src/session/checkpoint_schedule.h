// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Says when a checkpoint is due: after N steps, epochs or seconds, or as often as the time between
// failures suggests. It uses no files and no clock of its own.
#pragma once

#include <cstdint>
#include <optional>

namespace lockstep {

/// The interval in seconds between checkpoints that loses the least time to writing them and to repeating
/// steps after a failure: J. T. Daly, "A higher order estimate of the optimum checkpoint interval for restart
/// dumps", Future Generation Computer Systems 22 (2006), equation 37, which refines
/// sqrt(2 cost mtbf) of J. W. Young, "A first order approximation to the optimum checkpoint interval",
/// Communications of the ACM 17 (1974). `cost_seconds`: how long training waits for one checkpoint;
/// `mtbf_seconds` > 0: mean time between failures.
double optimal_checkpoint_interval(double cost_seconds, double mtbf_seconds);

struct CheckpointTriggers {
  std::optional<std::int64_t> every_steps, every_epochs;
  std::optional<double> every_seconds, mtbf_seconds;
  bool at_start = false;
};

class CheckpointSchedule {
 public:
  /// `now`: seconds of a steady clock. The first interval begins here.
  CheckpointSchedule(const CheckpointTriggers& triggers, double now);

  /// Whether a checkpoint is due by the steps or epochs done: the same on all ranks. `epochs_done` counts the
  /// epoch that just ended.
  bool due_by_count(std::int64_t step, bool epoch_ended, std::int64_t epochs_done) const;
  /// Whether a checkpoint is due by the chief's clock.
  bool due_by_time(double now) const;
  /// The interval in seconds that due_by_time() uses; nullopt if only counts matter.
  std::optional<double> interval_seconds() const;

  /// A checkpoint has begun: the next interval begins here.
  void began(double now) { last_ = now; }
  /// What a checkpoint took: how long training waited, and how long the file took.
  void measured(double blocked_seconds, double write_seconds);

 private:
  CheckpointTriggers triggers_;
  double last_;
  double cost_seconds_ = 1, write_seconds_ = 0;  // a guess until the first is measured
};

}  // namespace lockstep
