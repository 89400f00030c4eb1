// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/block_order.h"

#include <algorithm>

#include "core/error.h"
#include "core/philox.h"
#include "core/range.h"
#include "data/uniform_order.h"

namespace lockstep {

namespace {

constexpr std::uint32_t kBlocksPurpose = philox_purpose("step_plan/blocks");
constexpr std::uint32_t kWindowPurpose = philox_purpose("step_plan/window");

/// The key of a window's permutation: its seed is a random number of (seed, epoch, shard, window).
KeyedPermutation::Key window_key(std::uint64_t seed, std::int64_t epoch, std::int64_t shard,
                                 std::int64_t window) {
  const PhiloxBlock words =
      philox_words(seed, kWindowPurpose, static_cast<std::uint32_t>(epoch), static_cast<std::uint32_t>(shard),
                   static_cast<std::uint32_t>(window));
  return {std::uint64_t{words[1]} << 32 | words[0], kWindowPurpose, static_cast<std::uint32_t>(epoch)};
}

}  // namespace

BlockOrder::BlockOrder(BlockGrid grid, const Spec& spec)
    : grid_(std::move(grid)),
      spec_(spec),
      blocks_(grid_.num_blocks()),
      full_batches_(spec.samples_per_epoch / spec.batch_size),
      last_batch_(spec.samples_per_epoch % spec.batch_size) {
  LOCKSTEP_CHECK(spec.window_blocks >= 1 && spec.samples_per_epoch <= grid_.num_samples());
}

std::shared_ptr<const BlockOrder::Epoch> BlockOrder::epoch(std::int64_t number) const {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<const Epoch>& place = epochs_[static_cast<std::size_t>(number % 2)];
  if (place != nullptr && place->number == number) return place;
  const KeyedPermutation::Key key{spec_.seed, kBlocksPurpose, static_cast<std::uint32_t>(number)};
  const UniformOrder order(blocks_.count());
  std::vector<BlockGrid::Short> shorts = grid_.short_blocks();
  for (BlockGrid::Short& item : shorts) item.block = order.index_of(key, item.block);  // now its slot
  std::ranges::sort(shorts, {}, &BlockGrid::Short::block);
  auto made = std::make_shared<Epoch>(Epoch{.number = number, .slot = {0}, .start = {0}});
  std::int64_t missing = 0;
  for (const BlockGrid::Short& item : shorts) {
    missing += item.missing;
    made->slot.push_back(item.block + 1);
    made->start.push_back((item.block + 1) * grid_.block_samples() - missing);
  }
  place = made;
  return made;
}

std::int64_t BlockOrder::in_sequence(const Epoch& epoch, std::int64_t place) const {
  const auto next = std::ranges::upper_bound(epoch.start, place);
  const auto i = static_cast<std::size_t>(next - epoch.start.begin()) - 1;
  const std::int64_t beyond = place - epoch.start[i], size = grid_.block_samples();
  const std::int64_t slot = epoch.slot[i] + beyond / size;
  const KeyedPermutation::Key key{spec_.seed, kBlocksPurpose, static_cast<std::uint32_t>(epoch.number)};
  return grid_.samples(UniformOrder(blocks_.count()).at(key, slot)).first + beyond % size;
}

/// A microshard's part of the sequence: its samples of all full batches, and of the last one.
Range BlockOrder::part_of(std::int64_t shard) const {
  const auto before = [&](std::int64_t s) {
    return full_batches_ * (s * spec_.batch_size / spec_.shards) + s * last_batch_ / spec_.shards;
  };
  return {before(shard), before(shard + 1)};
}

void BlockOrder::samples(std::int64_t epoch_number, std::int64_t first, std::span<std::int64_t> out) const {
  const std::shared_ptr<const Epoch> order = epoch(epoch_number);
  const std::int64_t shards = spec_.shards, window_samples = spec_.window_blocks * grid_.block_samples();
  for (std::int64_t& sample : out) {
    const std::int64_t position = first + (&sample - out.data());
    LOCKSTEP_DCHECK(position >= 0 && position < spec_.samples_per_epoch);
    const std::int64_t batch = position / spec_.batch_size, offset = position % spec_.batch_size;
    const std::int64_t count = batch < full_batches_ ? spec_.batch_size : last_batch_;
    const std::int64_t shard = ((offset + 1) * shards - 1) / count;  // of StepPlan::shard_range()
    const std::int64_t in_batch = offset - shard * count / shards;
    const std::int64_t per_batch =
        (shard + 1) * spec_.batch_size / shards - shard * spec_.batch_size / shards;
    const Range part = part_of(shard);
    const std::int64_t in_part = batch * per_batch + in_batch;
    const std::int64_t window = in_part / window_samples, start = window * window_samples;
    const UniformOrder inside(std::min(window_samples, part.size() - start));
    const KeyedPermutation::Key key = window_key(spec_.seed, epoch_number, shard, window);
    sample = in_sequence(*order, part.first + start + inside.at(key, in_part - start));
  }
}

}  // namespace lockstep
