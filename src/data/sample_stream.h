// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A data set that is larger than the memory it may use: blocks of samples, read while they are used.
//
// Reader threads read the blocks into a fixed number of places. The step plan says which samples the next
// batches need, so the threads read ahead in just that order, until all places hold blocks that are still
// needed. A block that is not needed any more makes room. A thread that needs a block that is not there waits
// for it; the wait has a limit.
//
// An error of a reader thread is thrown where the block is used, so the same step fails on every run.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/range.h"
#include "data/block_grid.h"
#include "data/sample_store.h"
#include "data/step_plan.h"

namespace lockstep {

struct SampleStreamOptions {
  std::int64_t memory_bytes = 0;  ///< of all places together
  double timeout_seconds = 300;   ///< of a wait for a block
  /// The threads that read; 0: one, and more where batches have to wait (thread_choice.h), up to the
  /// process's cores.
  int threads = 1;
};

/// Threads that read a set into memory, or look through it, if nobody says how many.
inline constexpr int kReaderThreads = 2;
/// The number of those threads, of one that may be 0: DatasetMemory::threads.
inline int whole_set_threads(int threads) { return threads > 0 ? threads : kReaderThreads; }

/// The sizes of one sample.
struct SampleSizes {
  std::int64_t feature_bytes;
  std::int64_t label_indices, label_rows;  ///< values; one of them, or both, is 0
};

class SampleStream {
 public:
  /// Called for each block that was read, by a reader thread: throws Error(data) if the values are wrong.
  using Check = std::function<void(std::int64_t first, std::int64_t count, const SampleValues& values)>;
  /// "file.h5, record 17", for messages.
  using Where = std::function<std::string(std::int64_t sample)>;

  /// Throws Error(config) if the memory has no room for three blocks per thread.
  SampleStream(std::shared_ptr<SampleStore> store, BlockGrid grid, const SampleSizes& sizes, Check check,
               Where where, const SampleStreamOptions& options);
  /// Ends the reader threads. A thread that does not return from a read in time is left behind.
  ~SampleStream();
  SampleStream(const SampleStream&) = delete;
  SampleStream& operator=(const SampleStream&) = delete;

  /// Calls use(values) with the values of a sample, which stay until it returns. Waits until they are there.
  /// Throws Error(data) after the time limit, and what the reader or the check threw.
  template <typename Use>
  void with_sample(std::int64_t sample, Use use) {
    const Place place = acquire(sample);
    const Release release{*this, place.number};
    use(place.values);
  }

  /// A batch begins of which this process takes the microshards `shards`: the batches before it are done, and
  /// the threads read ahead for those that follow it in `plan`, until leave().
  void begin(const StepPlan& plan, const Batch& batch, Range shards);

  /// `plan` ends: the threads do not read ahead any more.
  void leave(const StepPlan& plan);

  struct Statistics {
    std::int64_t blocks_read = 0, bytes_read = 0;
    double seconds_waited = 0;      ///< of all callers together
    std::int64_t blocks_ready = 0;  ///< read, and needed by the running batch or a later one
    int threads = 0;                ///< that read
  };
  Statistics statistics() const;
  /// Bytes of all places, which are taken when they are first needed.
  std::int64_t memory_bytes() const;
  const BlockGrid& grid() const;

 private:
  struct Place {
    int number;
    SampleValues values;  ///< of the sample
  };
  struct Release {
    SampleStream& stream;
    int place;
    ~Release() { stream.release(place); }
  };
  struct State;
  Place acquire(std::int64_t sample);
  void release(int place);
  void end_threads();

  std::shared_ptr<State> state_;  ///< shared with the reader threads
  std::vector<std::thread> threads_;
};

}  // namespace lockstep
