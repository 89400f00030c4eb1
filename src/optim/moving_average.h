// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The moving average of a model's variables (average_rule.h): flat memory on the device with the layout of
// the trainable variables, and of the moving statistics where the rule averages those. Frozen variables have
// no average. Updates are element-wise, so any cut of the range has the same bits.
#pragma once

#include <cstdint>
#include <optional>

#include "core/buffer.h"
#include "core/range.h"
#include "core/tensor.h"
#include "optim/average_progress.h"
#include "optim/average_rule.h"
#include "optim/update_context.h"

namespace lockstep {

/// Whether a variable has an average: trainable ones, and moving statistics if the rule says so.
bool has_average(const AverageRule& rule, const Variable& variable);

class MovingAverage {
 public:
  MovingAverage(const AverageRule& rule, const UpdateContext& context);

  const AverageRule& rule() const { return rule_; }

  const AverageProgress& progress() const { return progress_; }
  /// Of a run that continues; else the average begins as the rule says.
  void set_progress(const AverageProgress& progress) { progress_ = progress; }
  bool has_begun(std::int64_t step) const { return progress_.has_begun(step); }
  std::optional<float> next_weight(std::int64_t step) { return progress_.next_weight(rule_, step); }
  std::size_t memory_bytes() const { return trainable_.size_bytes() + others_.size_bytes(); }

  /// Copies the variables if the average has not begun after global step `step`: before a step's update, and
  /// before the average is read. In the order of the first lane's stream.
  void follow(std::int64_t step);
  /// The update of a part of the flat trainable range with AverageRule::weight(). Threads may update disjoint
  /// parts concurrently.
  void update(const Lane& lane, Range part, float weight);
  /// The update of the moving statistics, if the rule averages them. Those that are computed anew are written
  /// between two calls of exchange(), and else stay as they are.
  void update_statistics(const Lane& lane, float weight);
  /// Exchanges the variables with their averages; a second call restores both. All threads of the pool.
  void exchange();

  bool has(const Variable& variable) const { return has_average(rule_, variable); }
  /// The address of the variable's average on the device.
  float* address(const Variable& variable) const;
  /// The variable's average in host memory, with the device's current values. to_device() copies changes
  /// back.
  Tensor tensor(const Variable& variable) const;
  void to_device();
  /// Marks the host's copy, where there is one, as outdated.
  void device_changed() { host_is_old_ = !context_.device.is_host(); }

 private:
  AverageRule rule_;
  AverageProgress progress_;
  UpdateContext context_;
  Buffer trainable_, others_;
  Buffer trainable_mirror_, others_mirror_;  ///< pinned host copies; empty on the CPU
  mutable bool host_is_old_ = false;
};

}  // namespace lockstep
