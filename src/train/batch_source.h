// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// From a data set and its step plan to the microshards that an executor asks for. Allocates nothing in a
// step.
#pragma once

#include <atomic>
#include <vector>

#include "data/dataset.h"
#include "data/step_plan.h"
#include "train/executor.h"

namespace lockstep {

class BatchSource {
 public:
  BatchSource(const Dataset& dataset, const StepPlan& plan, int lanes, int slots);

  Microshard extent(const Batch& batch, int shard) const;
  /// Gathers features and labels; `slot` numbers a label buffer that lives until the microshard's loss.
  Labels fetch(const Batch& batch, const Microshard& microshard, int lane, int slot, float* features);
  /// The labels alone.
  Labels fetch_labels(const Batch& batch, const Microshard& microshard, int lane, int slot);
  /// Time that lane 0 spent in fetch().
  double seconds() const { return seconds_; }

 private:
  std::span<const std::int64_t> chosen(const Batch& batch, const Microshard& microshard, int lane);
  Labels gather_labels(std::span<const std::int64_t> samples, int slot);

  const Dataset& dataset_;
  const StepPlan& plan_;
  std::vector<std::vector<std::int64_t>> samples_;  ///< per lane
  std::vector<std::vector<std::int32_t>> indices_;  ///< per slot
  std::vector<std::vector<float>> rows_;            ///< per slot
  double seconds_ = 0;
};

}  // namespace lockstep
