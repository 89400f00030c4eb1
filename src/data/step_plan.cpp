// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/step_plan.h"

#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "core/philox.h"
#include "core/range.h"
#include "data/length_buckets.h"
#include "data/uniform_order.h"

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
  LOCKSTEP_CHECK(spec_.repeat >= 1);
  chosen_ = spec_.choice != nullptr ? spec_.choice->size() : spec_.num_samples;
  LOCKSTEP_REQUIRE(chosen_ < (std::int64_t{1} << 60) / spec_.repeat, ErrorKind::config,
                   "{} passes over {} samples are too many for an epoch", spec_.repeat, chosen_);
  order_size_ = spec_.quotas != nullptr ? spec_.quotas->size() : chosen_ * spec_.repeat;
  LOCKSTEP_CHECK(spec_.quotas == nullptr || spec_.shuffle == Shuffle::samples);
  LOCKSTEP_CHECK(spec_.buckets == nullptr || (spec_.shuffle == Shuffle::samples && spec_.quotas == nullptr &&
                                              spec_.buckets->size() == order_size_));
  const std::int64_t rest = order_size_ % spec_.batch_size;
  samples_per_epoch_ = order_size_;
  if (spec_.last_batch == LastBatch::drop) samples_per_epoch_ -= rest;
  if (spec_.last_batch == LastBatch::fill && rest > 0) samples_per_epoch_ += spec_.batch_size - rest;
  LOCKSTEP_REQUIRE(samples_per_epoch_ > 0, ErrorKind::config,
                   "a batch of {} from {} samples with last_batch: drop leaves no batch; use a smaller batch "
                   "or keep the last one",
                   spec_.batch_size, order_size_);
  if (spec_.shuffle != Shuffle::blocks) return;
  LOCKSTEP_CHECK(spec_.blocks && spec_.blocks->num_samples() == chosen_);
  block_order_ = std::make_shared<const BlockOrder>(
      *spec_.blocks, BlockOrder::Spec{.batch_size = spec_.batch_size,
                                      .shards = spec_.shards,
                                      .samples_per_epoch = std::min(samples_per_epoch_, chosen_),
                                      .window_blocks = spec_.window_blocks,
                                      .seed = spec_.seed});
}

std::int64_t StepPlan::steps_per_epoch() const {
  return (samples_per_epoch_ + spec_.batch_size - 1) / spec_.batch_size;
}

Cursor StepPlan::normalised(Cursor cursor) const {
  LOCKSTEP_CHECK(cursor.epoch >= 0 && cursor.samples_consumed >= 0, "epoch {}, samples consumed {}",
                 cursor.epoch, cursor.samples_consumed);
  // A cursor of a run with another batch size may leave less than a batch. With LastBatch::drop this is the
  // end of the epoch.
  const std::int64_t left = order_size_ - cursor.samples_consumed;
  const bool at_end = left <= 0 || (spec_.last_batch == LastBatch::drop && left < spec_.batch_size);
  return at_end ? Cursor{cursor.epoch + 1, 0} : cursor;
}

Batch StepPlan::batch(Cursor cursor) const {
  const Cursor at = normalised(cursor);
  const std::int64_t left = order_size_ - at.samples_consumed;
  const bool whole = spec_.last_batch == LastBatch::fill;
  return {at.epoch, at.samples_consumed, whole ? spec_.batch_size : std::min(spec_.batch_size, left)};
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
    const std::int64_t left = order_size_ - first, rest = left % spec_.batch_size;
    if (left >= spec_.batch_size || spec_.last_batch == LastBatch::fill) counts.push_back(spec_.batch_size);
    if (rest != 0 && spec_.last_batch == LastBatch::smaller) counts.push_back(rest);
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

void StepPlan::in_pass(std::int64_t pass, std::int64_t first, std::span<std::int64_t> out) const {
  switch (spec_.shuffle) {
    case Shuffle::none:
      std::iota(out.begin(), out.end(), first);
      return;
    case Shuffle::samples: {
      const UniformOrder permutation(chosen_);
      const UniformOrder::Key key{spec_.seed, kShufflePurpose, static_cast<std::uint32_t>(pass)};
      for (std::int64_t& sample : out) sample = permutation.at(key, first++);
      return;
    }
    case Shuffle::blocks:
      return block_order_->samples(pass, first, out);
  }
}

void StepPlan::in_classes(std::int64_t epoch, std::int64_t first, std::span<std::int64_t> out) const {
  const UniformOrder places(order_size_);
  const UniformOrder::Key key{spec_.seed, kShufflePurpose, static_cast<std::uint32_t>(epoch)};
  for (std::int64_t& sample : out)
    sample = spec_.quotas->sample_at(spec_.seed, epoch, places.at(key, first++ % order_size_));
}

void StepPlan::in_buckets(std::int64_t epoch, std::int64_t first, std::span<std::int64_t> out) const {
  for (std::int64_t& sample : out)
    sample = spec_.buckets->sample_at(spec_.seed, epoch, spec_.batch_size, first++ % order_size_);
}

void StepPlan::samples(std::int64_t epoch, std::int64_t first, std::span<std::int64_t> out) const {
  LOCKSTEP_DCHECK(epoch >= 0 && first >= 0 && first + std::ssize(out) <= order_size_ + spec_.batch_size);
  if (spec_.quotas != nullptr) return in_classes(epoch, first, out);
  if (spec_.buckets != nullptr) return in_buckets(epoch, first, out);
  for (std::span<std::int64_t> rest = out; !rest.empty();) {
    const std::int64_t in_order = first % order_size_;
    const std::int64_t pass = in_order / chosen_, in_this = in_order % chosen_;
    const std::int64_t count = std::min(std::ssize(rest), chosen_ - in_this);
    in_pass(epoch * spec_.repeat + pass, in_this, rest.first(static_cast<std::size_t>(count)));
    rest = rest.subspan(static_cast<std::size_t>(count));
    first += count;
  }
  if (spec_.choice != nullptr)
    for (std::int64_t& sample : out) sample = spec_.choice->at(sample);
}

}  // namespace lockstep
