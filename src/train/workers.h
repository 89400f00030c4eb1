// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The compute threads of a rank, each with its stream and scratch memory.
#pragma once

#include <memory>
#include <vector>

#include "core/buffer.h"
#include "core/thread_pool.h"
#include "kernels/lane.h"

namespace lockstep {

class Workers {
 public:
  /// Lanes on `device`, each with a stream and scratch of its own. The device must outlive them.
  explicit Workers(int threads, Device& device = cpu_device());
  ThreadPool& pool() { return pool_; }
  std::span<Lane> lanes() { return lanes_; }
  /// Gives every lane at least so much scratch.
  void grow_scratch(std::size_t bytes);
  std::size_t scratch_bytes() const;

 private:
  Device& device_;
  ThreadPool pool_;
  std::vector<Lane> lanes_;
  std::vector<std::unique_ptr<DeviceStream>> streams_;
  std::vector<Buffer> scratch_;
};

}  // namespace lockstep
