// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A part of a batch as if it were a batch: consecutive microshards, numbered from 0. Samples keep their
// positions in the whole batch, which key their random numbers.
#pragma once

#include "core/range.h"
#include "train/batch_source.h"

namespace lockstep {

class PartBatchSource final : public BatchSource {
 public:
  /// A source over `batches`, which outlives it.
  explicit PartBatchSource(BatchSource& batches) : batches_(batches) {}
  /// The microshard of the batch that is number 0 from now on.
  void set_first(int shard) { first_ = shard; }

  void begin(const Batch& batch, Range own) override {
    batches_.begin(batch, {first_ + own.first, first_ + own.last});
  }
  Microshard extent(const Batch& batch, int shard) const override {
    return {shard, batches_.extent(batch, first_ + shard).first_sample,
            batches_.extent(batch, first_ + shard).n};
  }
  Labels fetch(const Batch& batch, const Microshard& microshard, FetchPlace place, float* features) override {
    return batches_.fetch(batch, whole(microshard), place, features);
  }
  Labels fetch_labels(const Batch& batch, const Microshard& microshard, FetchPlace place,
                      float* features) override {
    return batches_.fetch_labels(batch, whole(microshard), place, features);
  }

 private:
  Microshard whole(const Microshard& part) const { return {first_ + part.shard, part.first_sample, part.n}; }

  BatchSource& batches_;
  int first_ = 0;
};

}  // namespace lockstep
