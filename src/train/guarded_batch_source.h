// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Batches of another source, whose errors wait: a rank that cannot read its samples computes zeros in their
// place, so that it meets the other ranks in every sum of the step. Then all throw its error, and nothing of
// the step is kept.
#pragma once

#include <exception>
#include <mutex>
#include <vector>

#include "core/range.h"
#include "train/batch_source.h"

namespace lockstep {

class Communicator;

class GuardedBatchSource final : public BatchSource {
 public:
  /// `features`: values of a sample. The source outlives it.
  GuardedBatchSource(BatchSource& source, std::int64_t features) : source_(source), features_(features) {}

  void begin(const Batch& batch, Range own) override;
  Microshard extent(const Batch& batch, int shard) const override { return source_.extent(batch, shard); }
  Labels fetch(const Batch& batch, const Microshard& microshard, FetchPlace place, float* features) override;
  Labels fetch_labels(const Batch& batch, const Microshard& microshard, FetchPlace place,
                      float* features) override;
  Labels blank_labels(const Microshard& microshard, FetchPlace place) override {
    return source_.blank_labels(microshard, place);
  }

  /// An error of the batch waits on this rank.
  bool failed(const Batch& batch) const;
  /// All ranks. If it failed on any, all throw the error of the lowest rank that has one, as SharedError. The
  /// batch may then be read again.
  void check(const Batch& batch, Communicator& ranks);
  /// The same, if failed() on any: it never returns.
  [[noreturn]] void throw_error(const Batch& batch, Communicator& ranks);

 private:
  struct Failure {
    Batch batch;
    int shard;
    std::exception_ptr error;
  };
  void keep_error(const Batch& batch, int shard);
  const Failure* first(const Batch& batch) const;

  BatchSource& source_;
  const std::int64_t features_;
  mutable std::mutex mutex_;
  std::vector<Failure> failures_;
};

}  // namespace lockstep
