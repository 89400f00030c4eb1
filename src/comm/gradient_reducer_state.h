// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal to GradientReducer: what it has, and the sums of buckets, by the caller or by a thread of their
// own.
#pragma once

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "comm/gradient_reducer.h"
#include "comm/host_sum.h"
#include "comm/tree_reduction.h"
#include "core/function_ref.h"
#include "core/range.h"
#include "core/thread_pool.h"

namespace lockstep {

// Shared with the communication thread, so that it outlives a reducer that an exception destroys.
struct GradientReducer::State {
  std::unique_ptr<Communicator> communicator;
  // The options: of the CPU, unless a device has the sums.
  ReducerDevice place;
  HostTreeSum host_tree;
  bool fast = false, compress = false, overlap = false;
  std::int64_t num_elements;
  std::vector<Range> buckets;
  std::vector<std::string> names;  // "gradients 3 of 7"
  std::vector<Subtree> subtrees;
  std::vector<Buffer> memory;  // the partials, or the result if there are none
  std::vector<float*> partials;
  float* result = nullptr;
  // The memory in which sums are computed: the partials' own, or pinned host memory for a device without
  // direct communication.
  std::vector<Buffer> staging;
  std::vector<float*> host_partials;
  float* host_result = nullptr;
  std::optional<DeviceStream> copies;                 // stream of the reducing thread
  std::vector<std::unique_ptr<DeviceEvent>> written;  // per bucket: its partials are complete
  std::optional<DeviceEvent> returned;                // all totals are on the device
  std::optional<TreeReduction> tree;
  std::unique_ptr<HostSum> host;  // in place of the tree's sums and of `memory`; null: ranks send messages
  std::string why_not_shared;
  std::unique_ptr<ErrorFeedback> feedback;
  std::size_t feedback_bytes = 0;
  int leaves = 0;
  double seconds_blocked = 0;

  // The queue. Each bucket enters at most once between two wait_all(), so it never grows.
  std::mutex mutex;
  std::condition_variable work, done;
  std::vector<int> queue;
  std::vector<char> started;
  std::size_t taken = 0, finished = 0;
  bool stop = false;
  std::exception_ptr error;
  std::thread thread;
  std::vector<std::shared_ptr<void>> registered;  // destroyed before the memory and the communicators

  void set_options(Options options);
  void reduce(int bucket);
  void reduce_fast(const Range& range, const char* what);
  void fetch(int bucket);
  void give_back(const Range& range);
  void start_in_shared_memory(int bucket);
  void allocate(Communicator& group, ThreadPool* pool, int shards);
  void register_memory();
  void stage();
  void serve();
  void wait(std::unique_lock<std::mutex>& lock, FunctionRef<bool()> ended);
};

}  // namespace lockstep
