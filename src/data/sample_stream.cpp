// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/sample_stream.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "core/buffer.h"
#include "core/cpu.h"
#include "core/deadline.h"
#include "core/error.h"
#include "core/start_thread.h"
#include "core/timer.h"
#include "data/thread_choice.h"

namespace lockstep {

namespace {

constexpr std::int64_t kNone = -1;
/// The threads read at most so many batches ahead, also if all of the data fits.
constexpr std::int64_t kMostBatchesAhead = 256;
constexpr std::size_t kAlignment = 64;
/// For the reader threads to end.
constexpr double kEndSeconds = 10;
constexpr std::int64_t kMostPlaces = 65536;
/// If the number of threads is not given.
constexpr int kLeastThreads = 2, kMostThreads = 8;
/// Between two looks at how long batches have waited.
constexpr double kWindowSeconds = 0.5;

std::size_t aligned(std::int64_t bytes) {
  return (static_cast<std::size_t>(bytes) + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

struct SampleStream::State {
  enum class Stage { empty, reading, ready, failed };
  /// Room for one block.
  struct Slot {
    Stage stage = Stage::empty;
    std::int64_t block = kNone;
    std::int64_t needed = kNone;  ///< the last batch, in the count of begin(), that is known to need it
    int users = 0;                ///< that use its values or wait for them
    std::exception_ptr error;
    Buffer memory;  ///< of its values; taken when it is first used
  };
  /// A block that a user waits for, and that has no place yet.
  struct Request {
    std::int64_t block;
    int users;
  };

  State(std::shared_ptr<SampleStore> from, BlockGrid blocks, const SampleSizes& of, Check checking,
        Where place, const SampleStreamOptions& chosen)
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
  /// How many of the threads read.
  int active() const { return options.threads > 0 ? options.threads : choice.threads(); }
  void look_at_waiting();

  SampleRoom values(int slot, std::int64_t offset) const {
    char* const start = static_cast<char*>(slots[static_cast<std::size_t>(slot)].memory.data());
    SampleRoom at{.features = start + offset * sizes.feature_bytes};
    if (sizes.label_indices > 0)
      at.label_indices =
          reinterpret_cast<std::int32_t*>(start + feature_bytes) + offset * sizes.label_indices;
    if (sizes.label_rows > 0)
      at.label_rows = reinterpret_cast<float*>(start + feature_bytes) + offset * sizes.label_rows;
    return at;
  }

  void run(int number);
  int find_place(bool urgent);
  void take_place(int slot, std::int64_t block, std::int64_t needed, int users);
  void read(std::unique_lock<std::mutex>& lock, int slot);
  bool next_ahead(std::unique_lock<std::mutex>& lock, std::int64_t& block);
  void list_blocks(const StepPlan& of, Range own, const Batch& batch, std::vector<std::int64_t>& blocks);

  const std::shared_ptr<SampleStore> store;
  const BlockGrid grid;
  const SampleSizes sizes;
  const Check check;
  const Where where;
  const SampleStreamOptions options;
  std::size_t feature_bytes = 0, slot_bytes = 0;

  std::mutex mutex;
  std::condition_variable work;    ///< for reader threads: there may be something to read, or room for it
  std::condition_variable parked;  ///< for reader threads that are not active
  std::condition_variable done;    ///< for users: a block was read; and for the end of threads
  std::atomic<bool> stopped = false;
  int started = 0, ended = 0;  ///< reader threads
  int most_threads = 1;
  ThreadChoice choice{1};
  Timer window;
  double waited_before = 0;  ///< the window
  std::vector<Slot> slots;
  int hand = 0;  ///< where the search for a place begins
  std::unordered_map<std::int64_t, int> slot_of;
  std::deque<Request> requests;

  // What is read ahead. Batches are counted by begin(): `current` runs, the blocks of `ahead` are read.
  const StepPlan* plan = nullptr;
  Range shards{0, 0};
  Batch running_batch{0, 0, 0};
  std::int64_t current = 0, ahead = 0;
  Cursor ahead_cursor;               ///< of the batch after `ahead`
  bool listing = false;              ///< a thread lists the blocks of batch `ahead`
  std::int64_t course = 0;           ///< changes when the batches do not follow each other
  std::vector<std::int64_t> listed;  ///< blocks that batch `ahead` needs, in order
  std::size_t next_listed = 0;
  std::vector<std::int64_t> samples;  ///< of the thread that lists

  Statistics statistics;
};

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
    std::int64_t block = kNone;
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

SampleStream::SampleStream(std::shared_ptr<SampleStore> store, BlockGrid grid, const SampleSizes& sizes,
                           Check check, Where where, const SampleStreamOptions& options)
    : state_(std::make_shared<State>(std::move(store), std::move(grid), sizes, std::move(check),
                                     std::move(where), options)) {
  try {
    for (int thread = 0; thread < state_->most_threads; ++thread) {
      threads_.push_back(start_thread("reader thread", [state = state_, thread] { state->run(thread); }));
      const std::lock_guard lock(state_->mutex);
      ++state_->started;
    }
  } catch (...) {
    end_threads();
    throw;
  }
}

SampleStream::~SampleStream() { end_threads(); }

void SampleStream::end_threads() {
  bool ended = false;
  {
    std::unique_lock lock(state_->mutex);
    state_->stopped = true;
    state_->work.notify_all();
    state_->parked.notify_all();
    ended =
        state_->done.wait_until(lock, deadline_after(std::min(state_->options.timeout_seconds, kEndSeconds)),
                                [&] { return state_->ended == state_->started; });
  }
  // After join() this is the last owner of the store, and closes its files.
  for (std::thread& thread : threads_) ended ? thread.join() : thread.detach();
}

SampleStream::Place SampleStream::acquire(std::int64_t sample) {
  State& state = *state_;
  using Stage = State::Stage;
  const std::int64_t block = state.grid.block_of(sample);
  const std::int64_t offset = sample - state.grid.samples(block).first;
  std::unique_lock lock(state.mutex);
  const auto ready = [&]() -> int {
    const auto known = state.slot_of.find(block);
    if (known == state.slot_of.end()) return -1;
    const State::Slot& slot = state.slots[static_cast<std::size_t>(known->second)];
    return slot.stage == Stage::reading ? -1 : known->second;
  };
  int place = -1;
  if (const auto known = state.slot_of.find(block); known != state.slot_of.end()) {
    ++state.slots[static_cast<std::size_t>(known->second)].users;
    place = ready();
  } else {
    const auto asked = std::ranges::find(state.requests, block, &State::Request::block);
    if (asked == state.requests.end())
      state.requests.push_back({block, 1});
    else
      ++asked->users;
    state.work.notify_one();
  }
  if (place < 0) {
    const Timer timer;
    const bool there = state.done.wait_until(lock, deadline_after(state.options.timeout_seconds),
                                             [&] { return (place = ready()) >= 0; });
    state.statistics.seconds_waited += timer.seconds();
    if (!there)
      throw Error(ErrorKind::data,
                  fmt::format("no data came for {:g} s (timeout_seconds of section data)",
                              state.options.timeout_seconds),
                  state.where(sample),
                  "The file system may be down or overloaded. Raise the limit if it is only slow.");
  }
  const State::Slot& slot = state.slots[static_cast<std::size_t>(place)];
  if (slot.stage == Stage::failed) std::rethrow_exception(slot.error);
  return {place, state.values(place, offset)};
}

void SampleStream::release(int place) {
  State& state = *state_;
  const std::lock_guard lock(state.mutex);
  if (--state.slots[static_cast<std::size_t>(place)].users == 0 && !state.requests.empty())
    state.work.notify_one();
}

void SampleStream::begin(const StepPlan& plan, const Batch& batch, Range shards) {
  State& state = *state_;
  const std::lock_guard lock(state.mutex);
  const Batch& before = state.running_batch;
  const bool follows = state.plan == &plan && shards.first == state.shards.first &&
                       shards.last == state.shards.last &&
                       plan.batch(plan.advance({before.epoch, before.first})) == batch;
  state.running_batch = batch;
  state.look_at_waiting();
  if (follows) {
    ++state.current;
  } else {
    state.plan = &plan;
    state.shards = shards;
    state.ahead = std::max(state.current, state.ahead);
    state.current = state.ahead + 1;
    state.ahead_cursor = {batch.epoch, batch.first};
    state.listed.clear();
    state.next_listed = 0;
    ++state.course;
  }
  state.work.notify_all();
}

void SampleStream::leave(const StepPlan& plan) {
  State& state = *state_;
  std::unique_lock lock(state.mutex);
  if (state.plan == &plan) {
    state.plan = nullptr;
    state.listed.clear();
    state.next_listed = 0;
    ++state.course;
  }
  state.done.wait(lock, [&] { return !state.listing; });  // a computation, which ends
}

SampleStream::Statistics SampleStream::statistics() const {
  const std::lock_guard lock(state_->mutex);
  Statistics now = state_->statistics;
  now.threads = state_->active();
  now.blocks_ready = std::ranges::count_if(state_->slots, [&](const State::Slot& slot) {
    return slot.stage == State::Stage::ready && slot.needed >= state_->current;
  });
  return now;
}

std::int64_t SampleStream::memory_bytes() const {
  return static_cast<std::int64_t>(state_->slots.size() * state_->slot_bytes);
}

const BlockGrid& SampleStream::grid() const { return state_->grid; }

}  // namespace lockstep
