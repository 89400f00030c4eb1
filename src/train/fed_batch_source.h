// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Batches of another source, changed by a function: what a hook feeds into a step.
#pragma once

#include <utility>

#include "core/range.h"
#include "train/batch_source.h"
#include "train/feed.h"

namespace lockstep {

class FedBatchSource final : public BatchSource {
 public:
  explicit FedBatchSource(BatchSource& source) : source_(source) {}

  /// An empty function ends the feeding.
  void set_feed(Feed feed) { feed_ = std::move(feed); }
  bool feeds() const { return static_cast<bool>(feed_); }
  /// The global step of the batches that are fetched next.
  void set_step(std::int64_t step) { step_ = step; }

  void begin(const Batch& batch, Range own) override { source_.begin(batch, own); }
  Microshard extent(const Batch& batch, int shard) const override { return source_.extent(batch, shard); }
  /// Labels are fetched with the features: the feed may look at both.
  Labels fetch(const Batch& batch, const Microshard& microshard, FetchPlace place, float* features) override {
    Labels labels = source_.fetch(batch, microshard, place, features);
    feed_(step_, microshard, features, labels);
    return labels;
  }
  Labels blank_labels(const Microshard& microshard, FetchPlace place) override {
    return source_.blank_labels(microshard, place);
  }

 private:
  BatchSource& source_;
  Feed feed_;
  std::int64_t step_ = 0;
};

}  // namespace lockstep
