// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Batches of a data set in the order of its step plan, mixed if the plan says so.
#pragma once

#include <optional>
#include <vector>

#include "core/range.h"
#include "data/dataset.h"
#include "data/step_plan.h"
#include "train/batch_source.h"
#include "train/sample_mixer.h"

namespace lockstep {

class DatasetBatchSource final : public BatchSource {
 public:
  /// A source for `workers` concurrent callers and `slots` microshards in flight. References outlive the
  /// source.
  DatasetBatchSource(const Dataset& dataset, const StepPlan& plan, int workers, int slots);
  ~DatasetBatchSource() override;

  void begin(const Batch& batch, Range own) override;
  Microshard extent(const Batch& batch, int shard) const override;
  Labels fetch(const Batch& batch, const Microshard& microshard, FetchPlace place, float* features) override;
  Labels fetch_labels(const Batch& batch, const Microshard& microshard, FetchPlace place,
                      float* features) override;
  Labels blank_labels(const Microshard& microshard, FetchPlace place) override;

  /// Time that worker 0 has spent in fetch().
  double seconds() const { return seconds_; }
  const Dataset& dataset() const { return dataset_; }

 private:
  std::span<const std::int64_t> chosen(const Batch& batch, const Microshard& microshard, int worker);
  Labels gather_labels(std::span<const std::int64_t> samples, const SampleKey& key, FetchPlace place);
  /// The key of a position in the batch.
  SampleKey key(const Batch& batch, std::int64_t position) const {
    return {.seed = plan_.spec().seed, .epoch = batch.epoch, .place = batch.first + position};
  }
  /// Mixes the samples; `features` null: their labels alone.
  Labels mix(const Batch& batch, const Microshard& microshard, std::span<const std::int64_t> samples,
             FetchPlace place, float* features);

  const Dataset& dataset_;
  const StepPlan& plan_;
  const std::vector<SampleStream*> streams_;
  std::vector<std::vector<std::int64_t>> samples_;  ///< by worker
  std::vector<std::vector<float>> scratch_;         ///< by worker
  std::vector<std::vector<std::int32_t>> indices_;  ///< by slot
  std::vector<std::vector<float>> rows_;            ///< by slot
  std::optional<SampleMixer> mixer_;                ///< empty: samples are not mixed
  double seconds_ = 0;
};

}  // namespace lockstep
