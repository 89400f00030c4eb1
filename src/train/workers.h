// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The compute threads of a rank, and the lanes that they give work to, each with its stream and scratch
// memory. On the CPU each thread has a lane. On a device one thread fills all lanes: the first has the work
// of a step, the others may have branches of it (train/branches.h).
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "core/buffer.h"
#include "core/thread_pool.h"
#include "kernels/lane.h"

namespace lockstep {

class OneOpenMpThread;

class Workers {
 public:
  /// `threads` is 1 on a device with streams. The device must outlive them.
  explicit Workers(int threads, Device& device = cpu_device());
  ~Workers();
  ThreadPool& pool() { return pool_; }
  std::span<Lane> lanes() { return lanes_; }
  /// Gives the first `lanes` lanes at least so much scratch; none: one lane per thread.
  void grow_scratch(std::size_t bytes, std::optional<int> lanes = {});
  std::size_t scratch_bytes() const;

 private:
  Device& device_;
  std::unique_ptr<OneOpenMpThread> openmp_;  ///< of the thread that makes the workers, as long as they live
  ThreadPool pool_;
  std::vector<Lane> lanes_;
  std::vector<std::unique_ptr<DeviceStream>> streams_;
  std::vector<Buffer> scratch_;  ///< by lane
};

}  // namespace lockstep
