// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The sum of a flat float32 gradient over all shards, bucket by bucket, while the backward pass goes on.
//
// The caller adds its shards' gradients into this rank's partials (one flat array per maximal subtree of its
// shards, see tree.h and CounterPlan), says start(bucket) when a bucket is complete in all of them, and
// wait_all() at the end. Then result() is the total over all shards: the same bits on every rank, for every
// number of ranks. Ranks start the buckets in the same order. One thread calls start() and wait_all().
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "comm/buckets.h"
#include "comm/communicator.h"
#include "comm/device_communicator.h"
#include "comm/tree.h"
#include "core/device.h"

namespace lockstep {

struct GradientReducerOptions {
  /// tree: along the shard tree. fast: MPI_Allreduce, in the library's order; results depend on the number of
  /// ranks.
  enum class Mode { tree, fast };
  Mode mode = Mode::tree;
  /// A thread of our own makes the blocking calls while the caller computes. It wants a core, and
  /// MPI_THREAD_MULTIPLE (CommEnvironment::thread_multiple).
  bool overlap = false;
  /// Where partials and result lie, and the stream that writes partials before start() and reads the result
  /// after wait_all(). On a device with memory of its own the sums pass through pinned host memory: start()
  /// waits for that, or with overlap wait_all() does, and the stream waits for their way back.
  Device* device = nullptr;  ///< null: the CPU
  void* stream = nullptr;
  /// If not null, sums go along the tree from device to device, in the stream of this communicator of the
  /// same ranks, with `add` to put into += from into a stream. No thread, and no call waits.
  std::shared_ptr<DeviceCommunicator> direct;
  std::function<void(void* stream, float* into, const float* from, std::int64_t count)> add;
  /// Large transfers go in pieces of this size (a multiple of 64, at least 1024; the same on all ranks).
  std::size_t piece_bytes = std::size_t{512} << 10;
};

class GradientReducer {
 public:
  using Options = GradientReducerOptions;

  /// Collective. `buckets` are consecutive and cover [0, num_elements). `pool` (may be null) helps adding,
  /// without overlap only; start() may then not be called inside pool->run().
  GradientReducer(Communicator& communicator, ThreadPool* pool, int shards, std::int64_t num_elements,
                  std::vector<Range> buckets, Options options = {});
  /// Never communicates. If work is under way (an error is travelling), its thread and memory are left to
  /// themselves.
  ~GradientReducer();
  GradientReducer(const GradientReducer&) = delete;
  GradientReducer& operator=(const GradientReducer&) = delete;

  /// This rank's maximal subtrees; none for a rank without shards, exactly one for a single rank.
  int num_partials() const;
  Subtree partial_subtree(int k) const;
  /// num_elements floats on the device, 64-byte aligned, zero at first; reduction leaves them in an undefined
  /// state.
  float* partial(int k);

  const std::vector<Range>& buckets() const;
  void start(int bucket);
  /// Waits for all buckets, each of which must have been started; rethrows what went wrong in one of them.
  /// Throws Error(communication) when it takes longer than the watchdog's limit.
  void wait_all();
  /// The total: partial(0) where there is one. Valid between wait_all() and the next writing of partials.
  float* result();

  bool overlaps() const;
  /// The reducer's own communicator, for its counters.
  const Communicator& communicator() const;
  /// Memory of partials, result and scratch.
  std::size_t memory_bytes() const;
  /// What this rank sends in one step.
  std::int64_t bytes_per_step() const;
  /// How long the caller waited so far, in start() and wait_all().
  double seconds_blocked() const;
  /// How long the reductions themselves took so far.
  double seconds_reducing() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace lockstep
