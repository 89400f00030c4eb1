// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/sample_stream_state.h"

#include <algorithm>
#include <utility>

#include "core/cpu.h"
#include "core/error.h"
#include "core/range.h"

namespace lockstep {

namespace {

/// The most batches that the threads read ahead, also if all of the data fits.
constexpr std::int64_t kMostBatchesAhead = 256;
constexpr std::size_t kAlignment = 64;
constexpr std::int64_t kMostPlaces = 65536;
/// If the number of threads is not given.
constexpr int kLeastThreads = 2, kMostThreads = 8;
/// Between two looks at how long batches have waited.
constexpr double kWindowSeconds = 0.5;

std::size_t aligned(std::int64_t bytes) {
  return (static_cast<std::size_t>(bytes) + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

SampleStream::State::State(std::shared_ptr<SampleStore> from, BlockGrid blocks, const SampleSizes& of,
                           Check checking, Where place, const SampleStreamOptions& chosen)
    : store(std::move(from)),
      grid(std::move(blocks)),
      sizes(of),
      check(std::move(checking)),
      where(std::move(place)),
      options(chosen) {
  const std::int64_t most = grid.block_samples();
  feature_bytes = aligned(most * sizes.feature_bytes);
  slot_bytes = feature_bytes + aligned(most * (sizes.label_indices + sizes.label_rows) * 4);
  const auto fit = static_cast<std::int64_t>(static_cast<std::size_t>(options.memory_bytes) / slot_bytes);
  const std::int64_t least = 3 * std::max(options.threads, 1);
  if (fit < least)
    throw Error(ErrorKind::config,
                fmt::format("memory_gb gives this process {:.3g} GB for a data set, but blocks of {} "
                            "samples take {:.3g} GB, and {} of them are needed",
                            static_cast<double>(options.memory_bytes) * 1e-9, most,
                            static_cast<double>(slot_bytes) * 1e-9, least),
                where(0),
                "Set memory_gb higher, or block_samples lower, or store the data in smaller chunks.");
  const auto count = static_cast<std::size_t>(std::min({fit, grid.num_blocks(), kMostPlaces}));
  slots.resize(count);
  slot_of.reserve(count);
  most_threads = options.threads > 0
                     ? options.threads
                     : static_cast<int>(std::min<std::int64_t>(
                           fit / 3, std::clamp(available_cores(), kLeastThreads, kMostThreads)));
  choice = ThreadChoice(most_threads);
}

SampleRoom SampleStream::State::values(int slot, std::int64_t offset) const {
  char* const start = static_cast<char*>(slots[static_cast<std::size_t>(slot)].memory.data());
  SampleRoom at{.features = start + offset * sizes.feature_bytes};
  if (sizes.label_indices > 0)
    at.label_indices = reinterpret_cast<std::int32_t*>(start + feature_bytes) + offset * sizes.label_indices;
  if (sizes.label_rows > 0)
    at.label_rows = reinterpret_cast<float*>(start + feature_bytes) + offset * sizes.label_rows;
  return at;
}

/// A place whose block no known batch needs; if there is none and it is urgent, the one that is needed last.
/// -1: none.
int SampleStream::State::find_place(bool urgent) {
  const auto count = static_cast<int>(slots.size());
  int last = -1;
  for (int i = 0; i < count; ++i) {
    const int place = (hand + i) % count;
    const Slot& slot = slots[static_cast<std::size_t>(place)];
    if (slot.users > 0 || slot.stage == Stage::reading) continue;
    if (slot.stage == Stage::empty || slot.needed < current) {
      hand = (place + 1) % count;
      return place;
    }
    if (last < 0 || slot.needed > slots[static_cast<std::size_t>(last)].needed) last = place;
  }
  return urgent ? last : -1;
}

void SampleStream::State::take_place(int place, std::int64_t block, std::int64_t needed, int users) {
  Slot& slot = slots[static_cast<std::size_t>(place)];
  if (auto node = slot_of.extract(slot.block); !node.empty()) {
    node.key() = block;  // no allocation
    node.mapped() = place;
    slot_of.insert(std::move(node));
  } else {
    slot_of.emplace(block, place);
  }
  slot.stage = Stage::reading;
  slot.block = block;
  slot.needed = needed;
  slot.users = users;
  slot.error = nullptr;
}

void SampleStream::State::read(std::unique_lock<std::mutex>& lock, int place) {
  Slot& slot = slots[static_cast<std::size_t>(place)];
  const Range range = grid.samples(slot.block);
  lock.unlock();
  std::exception_ptr error;
  try {
    if (slot.memory.size_bytes() == 0) slot.memory = Buffer(cpu_device(), slot_bytes);
    const SampleRoom to = values(place, 0);
    store->read(range.first, range.size(), to);
    if (stopped) throw Error(ErrorKind::data, "reading was ended");  // nobody may be left to check it
    check(range.first, range.size(), to);
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();
  slot.stage = error ? Stage::failed : Stage::ready;
  slot.error = error;
  ++statistics.blocks_read;
  statistics.bytes_read += range.size() * sizes.feature_bytes;
  done.notify_all();
}

void SampleStream::State::list_blocks(const StepPlan& of, Range own, const Batch& batch,
                                      std::vector<std::int64_t>& blocks) {
  for (std::int64_t shard = own.first; shard < own.last; ++shard) {
    const Range range = of.shard_range(batch.count, shard);
    samples.resize(static_cast<std::size_t>(range.size()));
    of.samples(batch.epoch, batch.first + range.first, samples);
    for (const std::int64_t sample : samples) {
      const std::int64_t block = grid.block_of(sample);
      if (blocks.empty() || blocks.back() != block) blocks.push_back(block);
    }
  }
}

/// The next block to read ahead; false: wait.
bool SampleStream::State::next_ahead(std::unique_lock<std::mutex>& lock, std::int64_t& block) {
  for (;;) {
    if (ahead < current) next_listed = listed.size();  // too late
    while (next_listed < listed.size()) {
      block = listed[next_listed];
      const auto known = slot_of.find(block);
      if (known == slot_of.end()) return true;
      Slot& slot = slots[static_cast<std::size_t>(known->second)];
      slot.needed = std::max(slot.needed, ahead);
      ++next_listed;
    }
    if (plan == nullptr || listing || ahead - current >= kMostBatchesAhead) return false;
    if (ahead < current) {
      ahead = current - 1;
      ahead_cursor = {running_batch.epoch, running_batch.first};
    }
    const Batch batch = plan->batch(ahead_cursor);
    const std::int64_t of_course = course;
    const StepPlan& of = *plan;
    const Range own = shards;
    std::vector<std::int64_t> blocks = std::move(listed);
    blocks.clear();
    listed.clear();
    next_listed = 0;
    listing = true;
    lock.unlock();
    list_blocks(of, own, batch, blocks);  // takes some time, for many samples
    lock.lock();
    listing = false;
    listed = std::move(blocks);
    next_listed = 0;
    work.notify_all();
    done.notify_all();
    if (of_course != course) {
      listed.clear();
      continue;
    }
    ahead_cursor = plan->advance(ahead_cursor);
    ++ahead;
  }
}

/// At the begin of a batch.
void SampleStream::State::look_at_waiting() {
  if (options.threads > 0 || window.seconds() < kWindowSeconds) return;
  const int before = choice.threads();
  choice.window((statistics.seconds_waited - waited_before) / window.seconds());
  waited_before = statistics.seconds_waited;
  window.restart();
  if (choice.threads() > before) parked.notify_all();
}

void SampleStream::State::run(int number) {
  std::unique_lock lock(mutex);
  while (!stopped) {
    if (number >= active()) {
      work.notify_one();  // what this thread was woken for is another's
      parked.wait(lock, [&] { return stopped || number < active(); });
      continue;
    }
    std::int64_t block = kNoBlock;
    if (!requests.empty()) {
      if (const int place = find_place(true); place >= 0) {
        const Request request = requests.front();
        requests.pop_front();
        take_place(place, request.block, current, request.users);
        read(lock, place);
        continue;
      }
    } else if (next_ahead(lock, block)) {
      if (!requests.empty()) continue;
      if (const int place = find_place(false); place >= 0) {
        ++next_listed;
        take_place(place, block, ahead, 0);
        read(lock, place);
        continue;
      }
    }
    if (stopped) break;
    work.wait(lock);
  }
  ++ended;
  done.notify_all();
}

}  // namespace lockstep
