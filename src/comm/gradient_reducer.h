// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Sums a flat float32 gradient over all shards, bucket by bucket, during the backward pass.
//
// The caller adds the gradients of its shards into this rank's partials: one flat array per maximal subtree
// of its shards (tree.h, CounterPlan). It calls start(bucket) when a bucket is complete in all partials, and
// wait_all() at the end. Then result() is the total over all shards, with the same bits on every rank and for
// every number of ranks. All ranks start the buckets in the same order. One thread calls start() and
// wait_all().
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "comm/buckets.h"
#include "comm/communicator.h"
#include "comm/device_communicator.h"
#include "comm/error_feedback.h"
#include "comm/node_arithmetic.h"
#include "comm/ownership.h"
#include "comm/tree.h"
#include "core/device.h"
#include "core/range.h"
#include "core/thread_pool.h"

namespace lockstep {

/// Sums on the CPU along the shard tree.
struct HostTreeSum {
  /// What becomes of the nodes of the tree. `rounded`: each is rounded to bfloat16 (node_arithmetic.h), and
  /// ranks send 16 bits. The caller rounds the nodes below and at its partials when it adds them
  /// (TreeStep::root: the total). `rounded_with_feedback`: what rounding takes away is given back in the next
  /// step (error_feedback.h). The caller rounds with feedback() the nodes at and below its partials.
  enum class Nodes { exact, rounded, rounded_with_feedback };
  Nodes nodes = Nodes::exact;
  /// Each rank gets the sum of the parts that it owns alone, if its buckets are given here. gather() then
  /// completes the result, or other values of the same layout. Null: all ranks get everything.
  std::shared_ptr<const Ownership> ownership = {};
  /// Ranks of one host sum in memory that all of them see (host_sum.h), if all ranks are on one host. The
  /// bits are the same.
  bool shared_memory = false;
  /// Large transfers are split into pieces of this size: a multiple of 64, at least 1024, the same on all
  /// ranks.
  std::size_t piece_bytes = std::size_t{512} << 10;
};

/// A device with its own memory, which has partials and result. start() waits for the copy to the host; with
/// overlap, the separate thread does. The stream waits for the copy back.
struct ReducerDevice {
  Device* device = nullptr;
  void* stream = nullptr;  ///< writes the partials before start(), and reads the result after wait_all()
  /// If not null, sums go from device to device, in the stream of this communicator, which must have the same
  /// ranks. Unless its calls block, there is no separate thread. Null: through pinned host memory.
  std::shared_ptr<DeviceCommunicator> direct = {};
  const NodeArithmetic* arithmetic = nullptr;  ///< of the device; it outlives the reducer
};

/// Sums of a device along the shard tree.
struct DeviceTreeSum {
  ReducerDevice place;
  bool compress = false;  ///< HostTreeSum::Nodes::rounded
};

/// MPI_Allreduce or ncclAllReduce in the library's order: results depend on the number of ranks.
struct FastSum {
  std::optional<ReducerDevice> place = {};  ///< none: the CPU
};

using GradientSum = std::variant<HostTreeSum, DeviceTreeSum, FastSum>;

struct GradientReducerOptions {
  GradientSum sum = {};
  /// A separate thread makes the blocking calls while the caller computes. It needs a core and
  /// MPI_THREAD_MULTIPLE (CommEnvironment::thread_multiple).
  bool overlap = false;

  /// The nodes of the tree are rounded.
  bool compresses() const;
  /// HostTreeSum's; null elsewhere.
  std::shared_ptr<const Ownership> ownership() const;
};

class GradientReducer {
 public:
  using Options = GradientReducerOptions;

  /// Collective. `buckets` are consecutive and cover [0, num_elements). `pool` (may be null) helps with
  /// additions if there is no overlap; start() must then not be called inside pool->run().
  GradientReducer(Communicator& communicator, ThreadPool* pool, int shards, std::int64_t num_elements,
                  std::vector<Range> buckets, Options options = {});
  /// Does not communicate. If a reduction is in progress, because an exception is propagating, its thread is
  /// detached and keeps the memory alive.
  ~GradientReducer();
  GradientReducer(const GradientReducer&) = delete;
  GradientReducer& operator=(const GradientReducer&) = delete;

  /// The number of maximal subtrees of this rank: 0 for a rank without shards, 1 for a single rank.
  int num_partials() const;
  Subtree partial_subtree(int k) const;
  /// num_elements floats on the device, 64-byte aligned, initially zero. A reduction leaves them undefined.
  float* partial(int k);

  const std::vector<Range>& buckets() const;
  void start(int bucket);
  /// Waits for all buckets, each of which must have been started, and rethrows the error of a failed
  /// reduction. Throws Error(communication) after a time limit derived from the watchdog's.
  void wait_all();
  /// How many buckets, in the order of their start, have their totals in result(); 0 after an error, which
  /// wait_all() reports. Does not wait. Not for a device with its own memory.
  int num_done() const;
  /// Waits until num_done() is at least `count`, of as many that were started, or a reduction has failed.
  void wait_for(int count);
  /// The total; the same memory as partial(0) if that exists. Valid from wait_all() until the partials are
  /// written again.
  float* result();
  /// All ranks get the parts that other ranks own, of a flat array like the result, in host memory; with an
  /// ownership. Called on the thread that calls wait_all(), after it. All ranks.
  void gather(float* data, const char* what);

  bool overlaps() const;
  bool compresses() const;
  /// The residuals of this rank's nodes; null: there are none.
  ErrorFeedback* feedback() const;
  /// The nodes of all ranks that have residuals: each element of a node once, in no order.
  std::vector<NodePart> node_parts() const;
  /// Sums are computed in memory that all ranks see.
  bool shares_memory() const;
  /// Why not, although it was asked for; empty otherwise, and for one rank.
  const std::string& why_not_shared() const;
  /// The reducer's communicator, for its counters.
  const Communicator& communicator() const;
  /// Bytes of partials, result, staging and scratch memory.
  std::size_t memory_bytes() const;
  /// Bytes that this rank sends per step, with one gather(); in shared memory, those that it reads.
  std::int64_t bytes_per_step() const;
  /// Seconds that the caller has spent in start() and wait_all() so far.
  double seconds_blocked() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace lockstep
