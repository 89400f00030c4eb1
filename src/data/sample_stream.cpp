// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/sample_stream.h"

#include <algorithm>
#include <mutex>
#include <thread>

#include "core/deadline.h"
#include "core/error.h"
#include "core/range.h"
#include "core/start_thread.h"
#include "core/timer.h"
#include "data/sample_stream_state.h"

namespace lockstep {

namespace {

/// For the reader threads to end.
constexpr double kEndSeconds = 10;

}  // namespace

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
