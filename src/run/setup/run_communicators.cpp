// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/setup/run_communicators.h"

#include <algorithm>
#include <vector>

#include "comm/mpi_device_communicator.h"
#include "comm/nccl_hosts.h"
#include "comm/tree_reduction.h"

namespace lockstep {

RunCommunicators::RunCommunicators(Communicator& world)
    : gradients_(world.duplicate("gradients")),
      batch_norm_(world.duplicate("batch norm")),
      control_(world.duplicate("control")) {}

// Two groups, one per stream: NCCL's calls of one group must come in the same order on all ranks. Of batch
// norm's, only the allgather is used.
void RunCommunicators::connect_devices(Communicator& world, const Config& config, const RankPlace& place,
                                       Workers& workers, int shards) {
  const MakeDeviceCommunicator make = device_communicator();
  Device& device = place.device.device;
  if (!place.device.is_gpu() || world.size() == 1) return;
  if (config.comm.nccl_shared_gpu && make == nullptr)
    throw config.error("", "comm.nccl_shared_gpu", "this program was built without NCCL",
                       "Build where NCCL is, or leave the option out.");
  const bool shared = place.shares_gpus && !config.comm.nccl_shared_gpu;
  if (shared || make == nullptr) return connect_by_mpi(world, config, place);
  if (place.shares_gpus) take_ranks_for_hosts(world, place.ranks_on_host);
  gradient_stream_.emplace(device);
  direct_gradients_ = make(*gradients_, device, gradient_stream_->get(), "gradients");
  direct_batch_norm_ = make(*batch_norm_, device, workers.lanes().front().stream, "batch norm");
  const bool fast = config.comm.fast_reduction;
  const std::vector<int> peers =
      fast ? std::vector<int>{} : TreeReduction::peers_of(world.rank(), world.size(), shards);
  direct_gradients_->connect({.peers = peers, .allreduces = fast});
  direct_batch_norm_->connect({});
}

// Batch norm's few numbers go through the host all the same: they are too small for a difference.
void RunCommunicators::connect_by_mpi(Communicator& world, const Config& config, const RankPlace& place) {
  using enum CommunicationOptions::GpuAwareMpi;
  const CommunicationOptions::GpuAwareMpi wanted = config.comm.gpu_aware_mpi;
  const char mine = wanted == on || (wanted == automatic && mpi_takes_device_memory()) ? 1 : 0;
  std::vector<char> all(static_cast<std::size_t>(world.size()));
  world.allgather(&mine, sizeof mine, all.data(), "does MPI take GPU memory");
  if (std::ranges::find(all, 0) != all.end()) return;
  gradient_stream_.emplace(place.device.device);
  direct_gradients_ =
      make_mpi_device_communicator(*gradients_, place.device.device, gradient_stream_->get(), "gradients");
  direct_gradients_->connect({});
}

}  // namespace lockstep
