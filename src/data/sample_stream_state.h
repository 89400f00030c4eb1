// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal to SampleStream: the places of blocks, and the reader threads that fill them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "core/buffer.h"
#include "core/range.h"
#include "core/timer.h"
#include "data/sample_stream.h"
#include "data/thread_choice.h"

namespace lockstep {

struct SampleStream::State {
  static constexpr std::int64_t kNoBlock = -1;
  enum class Stage { empty, reading, ready, failed };
  /// Room for one block.
  struct Slot {
    Stage stage = Stage::empty;
    std::int64_t block = kNoBlock;
    std::int64_t needed = kNoBlock;  ///< the last batch, in the count of begin(), that is known to need it
    int users = 0;                   ///< that use its values or wait for them
    std::exception_ptr error;
    Buffer memory;  ///< of its values; taken when it is first used
  };
  /// A block that a user waits for, and that has no place yet.
  struct Request {
    std::int64_t block;
    int users;
  };

  State(std::shared_ptr<SampleStore> from, BlockGrid blocks, const SampleSizes& of, Check checking,
        Where place, const SampleStreamOptions& chosen);
  /// How many of the threads read.
  int active() const { return options.threads > 0 ? options.threads : choice.threads(); }
  void look_at_waiting();

  SampleRoom values(int slot, std::int64_t offset) const;

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

}  // namespace lockstep
