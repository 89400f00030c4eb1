// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/setup/workers.h"

#include <algorithm>
#include <thread>

#include "core/cpu.h"
#include "core/log.h"

namespace lockstep {

int ranks_on_this_host(Communicator& world) { return world.split_by_host("host")->size(); }

int cores_per_rank(int ranks_on_host) {
  const int mine = available_cores();
  // A mask smaller than the machine is a launcher's binding, made for this rank; else the machine is shared.
  const bool bound = mine < static_cast<int>(std::thread::hardware_concurrency()) && ranks_on_host > 1;
  return bound ? mine : std::max(1, mine / ranks_on_host);
}

int choose_threads(const Config& config, Communicator& world, int ranks_on_host, int own_shards) {
  int threads = config.general.has("threads") ? static_cast<int>(config.general.integer("threads"))
                                              : cores_per_rank(ranks_on_host);
  if (threads > own_shards && world.rank() == 0 && config.general.has("threads"))
    log_info(
        "using {} of {} threads per rank: a microshard is computed by one thread, and a rank has {} of them",
        own_shards, threads, own_shards);
  return std::max(1, std::min(threads, own_shards));
}

Workers::Workers(int threads, Device& device)
    : device_(device), pool_(threads), lanes_(static_cast<std::size_t>(threads)) {
  for (int i = 0; i < threads; ++i) {
    streams_.push_back(std::make_unique<DeviceStream>(device));
    lanes_[static_cast<std::size_t>(i)].index = i;
    lanes_[static_cast<std::size_t>(i)].stream = streams_.back()->get();
  }
}

void Workers::grow_scratch(std::size_t bytes) {
  if (!lanes_.empty() && lanes_.front().scratch_bytes >= bytes) return;
  scratch_.clear();
  for (Lane& lane : lanes_) {
    scratch_.emplace_back(device_, bytes);
    lane.scratch = scratch_.back().data();
    lane.scratch_bytes = bytes;
  }
}

std::size_t Workers::scratch_bytes() const {
  std::size_t sum = 0;
  for (const Buffer& buffer : scratch_) sum += buffer.size_bytes();
  return sum;
}

}  // namespace lockstep
