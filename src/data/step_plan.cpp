// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/step_plan.h"

#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "core/philox.h"

namespace lockstep {

namespace {

// Seeds determine the order of samples: do not change it.
constexpr std::uint32_t kShufflePurpose = philox_purpose("step_plan/shuffle");

}  // namespace

StepPlan::StepPlan(StepPlanSpec spec) : spec_(std::move(spec)) {
  LOCKSTEP_REQUIRE(spec_.num_samples >= 1, ErrorKind::config, "there are no samples to plan steps for");
  LOCKSTEP_REQUIRE(spec_.batch_size >= 1, ErrorKind::config, "the batch size is {}; it must be at least 1",
                   spec_.batch_size);
  LOCKSTEP_REQUIRE(spec_.shards >= 1, ErrorKind::config, "shards is {}; it must be at least 1", spec_.shards);
  LOCKSTEP_REQUIRE(spec_.num_samples < std::int64_t{1} << 60, ErrorKind::config, "{} samples are too many",
                   spec_.num_samples);
  samples_per_epoch_ =
      spec_.drop_remainder ? spec_.num_samples - spec_.num_samples % spec_.batch_size : spec_.num_samples;
  LOCKSTEP_REQUIRE(samples_per_epoch_ > 0, ErrorKind::config,
                   "a batch of {} from {} samples with drop_remainder leaves no batch; use a smaller batch "
                   "or keep the remainder",
                   spec_.batch_size, spec_.num_samples);
  if (spec_.shuffle != Shuffle::blocks) return;
  LOCKSTEP_CHECK(spec_.blocks && spec_.blocks->num_samples() == spec_.num_samples);
  block_order_ = std::make_shared<const BlockOrder>(*spec_.blocks,
                                                    BlockOrder::Spec{.batch_size = spec_.batch_size,
                                                                     .shards = spec_.shards,
                                                                     .samples_per_epoch = samples_per_epoch_,
                                                                     .window_blocks = spec_.window_blocks,
                                                                     .seed = spec_.seed});
}

std::int64_t StepPlan::steps_per_epoch() const {
  return (samples_per_epoch_ + spec_.batch_size - 1) / spec_.batch_size;
}

Cursor StepPlan::normalised(Cursor cursor) const {
  LOCKSTEP_CHECK(cursor.epoch >= 0 && cursor.samples_consumed >= 0, "epoch {}, samples consumed {}",
                 cursor.epoch, cursor.samples_consumed);
  // A cursor of a run with another batch size may leave less than a batch. With drop_remainder this is the
  // end of the epoch.
  const std::int64_t left = spec_.num_samples - cursor.samples_consumed;
  const bool at_end = left <= 0 || (spec_.drop_remainder && left < spec_.batch_size);
  return at_end ? Cursor{cursor.epoch + 1, 0} : cursor;
}

Batch StepPlan::batch(Cursor cursor) const {
  const Cursor at = normalised(cursor);
  return {at.epoch, at.samples_consumed, std::min(spec_.batch_size, spec_.num_samples - at.samples_consumed)};
}

Cursor StepPlan::advance(Cursor cursor) const {
  const Batch used = batch(cursor);
  return normalised({used.epoch, used.first + used.count});
}

Range StepPlan::shard_range(std::int64_t count, std::int64_t shard) const {
  LOCKSTEP_DCHECK(shard >= 0 && shard < spec_.shards);
  return {shard * count / spec_.shards, (shard + 1) * count / spec_.shards};
}

std::vector<std::int64_t> StepPlan::distinct_shard_sizes(Cursor start) const {
  // The batch sizes from `start` on: full batches, the last batch of the epoch of `start`, and the last batch
  // of every later epoch.
  std::vector<std::int64_t> counts;
  for (const std::int64_t first : {normalised(start).samples_consumed, std::int64_t{0}}) {
    const std::int64_t left = spec_.num_samples - first;
    if (left >= spec_.batch_size) counts.push_back(spec_.batch_size);
    if (left % spec_.batch_size != 0 && !spec_.drop_remainder) counts.push_back(left % spec_.batch_size);
  }
  std::vector<std::int64_t> sizes;
  // The ranges of shard_range() have floor(count / G) or ceil(count / G) samples.
  for (const std::int64_t count : counts)
    for (const std::int64_t size : {count / spec_.shards, (count + spec_.shards - 1) / spec_.shards})
      if (size > 0) sizes.push_back(size);
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

void StepPlan::samples(std::int64_t epoch, std::int64_t first, std::span<std::int64_t> out) const {
  LOCKSTEP_DCHECK(epoch >= 0 && first >= 0 && first + std::ssize(out) <= spec_.num_samples);
  switch (spec_.shuffle) {
    case Shuffle::none:
      std::iota(out.begin(), out.end(), first);
      return;
    case Shuffle::samples: {
      const KeyedPermutation permutation(spec_.num_samples);
      const KeyedPermutation::Key key{spec_.seed, kShufflePurpose, static_cast<std::uint32_t>(epoch)};
      for (std::int64_t& sample : out) sample = permutation.at(key, first++);
      return;
    }
    case Shuffle::blocks:
      return block_order_->samples(epoch, first, out);
  }
}

}  // namespace lockstep
