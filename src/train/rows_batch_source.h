// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// One batch that the caller holds in memory, cut into microshards of any sizes.
#pragma once

#include <vector>

#include "train/batch_source.h"

namespace lockstep {

class RowsBatchSource final : public BatchSource {
 public:
  /// `feature_elements`: values of one sample. `sizes`: samples of each microshard; 0 is allowed.
  RowsBatchSource(std::int64_t feature_elements, std::vector<std::int64_t> sizes);

  /// The rows of all samples, which the caller keeps until the batch has run. Labels without indices and rows
  /// mean that there are none.
  void set(const float* features, Labels labels = {.columns = 0});
  /// The only batch: all samples.
  Batch batch() const { return {0, 0, first_.back()}; }

  Microshard extent(const Batch& batch, int shard) const override;
  Labels fetch(const Batch& batch, const Microshard& microshard, FetchPlace place, float* features) override;
  Labels fetch_labels(const Batch& batch, const Microshard& microshard, FetchPlace place,
                      float* features) override;

 private:
  std::int64_t feature_elements_;
  std::vector<std::int64_t> first_;  ///< by microshard: its first sample; then the number of samples
  const float* features_ = nullptr;
  Labels labels_{.columns = 0};
};

}  // namespace lockstep
