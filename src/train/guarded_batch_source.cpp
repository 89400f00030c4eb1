// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/guarded_batch_source.h"

#include <algorithm>

#include "comm/agree.h"
#include "comm/communicator.h"
#include "comm/shared_error.h"
#include "core/nested_error.h"

namespace lockstep {

void GuardedBatchSource::begin(const Batch& batch, Range own) {
  {
    // A device has read this batch ahead. Of others nothing is kept: the run may go back, and read them
    // again.
    const std::lock_guard lock(mutex_);
    std::erase_if(failures_, [&](const Failure& failure) { return failure.batch != batch; });
  }
  source_.begin(batch, own);
}

Labels GuardedBatchSource::fetch(const Batch& batch, const Microshard& microshard, FetchPlace place,
                                 float* features) {
  try {
    return source_.fetch(batch, microshard, place, features);
  } catch (...) {
    keep_error(batch, microshard.shard);
  }
  std::fill_n(features, microshard.n * features_, 0.0F);
  return source_.blank_labels(microshard, place);
}

Labels GuardedBatchSource::fetch_labels(const Batch& batch, const Microshard& microshard, FetchPlace place,
                                        float* features) {
  try {
    return source_.fetch_labels(batch, microshard, place, features);
  } catch (...) {
    keep_error(batch, microshard.shard);
  }
  return source_.blank_labels(microshard, place);
}

void GuardedBatchSource::keep_error(const Batch& batch, int shard) {
  const std::lock_guard lock(mutex_);
  failures_.push_back({batch, shard, std::current_exception()});
}

/// Of the lowest microshard, whatever thread was the first.
const GuardedBatchSource::Failure* GuardedBatchSource::first(const Batch& batch) const {
  const Failure* found = nullptr;
  for (const Failure& failure : failures_)
    if (failure.batch == batch && (found == nullptr || failure.shard < found->shard)) found = &failure;
  return found;
}

bool GuardedBatchSource::failed(const Batch& batch) const {
  const std::lock_guard lock(mutex_);
  return first(batch) != nullptr;
}

void GuardedBatchSource::check(const Batch& batch, Communicator& ranks) {
  std::exception_ptr error;
  {
    const std::lock_guard lock(mutex_);
    if (const Failure* const failure = first(batch)) error = failure->error;
    std::erase_if(failures_, [&](const Failure& failure) { return failure.batch == batch; });
  }
  try {
    agree(
        ranks,
        [&] {
          if (error) std::rethrow_exception(error);
        },
        "reading samples");
  } catch (const Error& shared) {
    if (shared.kind() == ErrorKind::communication) throw;
    throw_with_cause(SharedError(shared), cause_of(shared));
  }
}

void GuardedBatchSource::throw_error(const Batch& batch, Communicator& ranks) {
  check(batch, ranks);
  throw Error(ErrorKind::bug, "no rank has the error of its samples");
}

}  // namespace lockstep
