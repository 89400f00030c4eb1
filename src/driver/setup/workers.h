// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What a rank computes with: its threads, their lanes and scratch.
#pragma once

#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "core/buffer.h"
#include "core/thread_pool.h"
#include "driver/config/config.h"
#include "kernels/lane.h"

namespace lockstep {

/// Compute threads of this rank: `threads` of the configuration, or the cores that it may use, shared among
/// the ranks of its host if nothing binds them; never more than its shards. All ranks (it asks who shares the
/// host).
int choose_threads(const Config& config, Communicator& world, int ranks_on_host, int own_shards);
/// Ranks that share this rank's host. All ranks.
int ranks_on_this_host(Communicator& world);
/// Cores that this rank may count as its own.
int cores_per_rank(int ranks_on_host);

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
