// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/step_plan.h"

#include <algorithm>
#include <bit>

#include "core/error.h"
#include "core/philox.h"

namespace lockstep {

namespace {

// Seeds determine the order of samples: do not change these constants.
constexpr int kFeistelRounds = 6;
/// With halves of one or two bits, some orders of few samples are much more frequent than others.
constexpr int kMinIndexBits = 6;
constexpr std::uint32_t kShufflePurpose = philox_purpose("step_plan/shuffle");

constexpr std::uint64_t low_mask(int bits) { return (std::uint64_t{1} << bits) - 1; }

}  // namespace

StepPlan::StepPlan(StepPlanSpec spec) : spec_(spec) {
  LOCKSTEP_REQUIRE(spec.num_samples >= 1, ErrorKind::config, "there are no samples to plan steps for");
  LOCKSTEP_REQUIRE(spec.batch_size >= 1, ErrorKind::config, "the batch size is {}; it must be at least 1",
                   spec.batch_size);
  LOCKSTEP_REQUIRE(spec.shards >= 1, ErrorKind::config, "shards is {}; it must be at least 1", spec.shards);
  LOCKSTEP_REQUIRE(spec.num_samples < std::int64_t{1} << 60, ErrorKind::config, "{} samples are too many",
                   spec.num_samples);
  samples_per_epoch_ =
      spec.drop_remainder ? spec.num_samples - spec.num_samples % spec.batch_size : spec.num_samples;
  LOCKSTEP_REQUIRE(samples_per_epoch_ > 0, ErrorKind::config,
                   "a batch of {} from {} samples with drop_remainder leaves no batch; use a smaller batch "
                   "or keep the remainder",
                   spec.batch_size, spec.num_samples);
  const int bits = std::max(
      kMinIndexBits, static_cast<int>(std::bit_width(static_cast<std::uint64_t>(spec.num_samples - 1))));
  low_bits_ = bits / 2;
  high_bits_ = bits - low_bits_;
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

// A Feistel network with alternating, possibly unequal halves over [0, 2^bits), the smallest such range (at
// least 2^6) that contains all indices. An index outside the samples passes through the network again (cycle
// walking: Black and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002). With 33 or more samples
// this takes fewer than two passes on average.
std::int64_t StepPlan::sample_at(std::int64_t epoch, std::int64_t position) const {
  LOCKSTEP_DCHECK(position >= 0 && position < spec_.num_samples && epoch >= 0);
  if (!spec_.shuffle) return position;
  const auto step = static_cast<std::uint32_t>(epoch);
  auto index = static_cast<std::uint64_t>(position);
  do {
    std::uint64_t low = index & low_mask(low_bits_), high = index >> low_bits_;
    for (std::uint32_t round = 0; round < kFeistelRounds; round += 2) {
      low ^= philox_words(spec_.seed, kShufflePurpose, step, static_cast<std::uint32_t>(high), round)[0] &
             low_mask(low_bits_);
      high ^= philox_words(spec_.seed, kShufflePurpose, step, static_cast<std::uint32_t>(low), round + 1)[0] &
              low_mask(high_bits_);
    }
    index = high << low_bits_ | low;
  } while (index >= static_cast<std::uint64_t>(spec_.num_samples));
  return static_cast<std::int64_t>(index);
}

}  // namespace lockstep
