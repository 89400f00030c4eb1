// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The section `comm` of a configuration: how gradients are summed across ranks, and what watches over the
// ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "config/params.h"

namespace lockstep {

struct CommunicationOptions {
  enum class Overlap { automatic, on, off };
  enum class SharedMemory { automatic, on, off };
  enum class GpuAwareMpi { automatic, on, off };
  /// The most bytes of gradients for which SharedMemory::automatic uses it with a sharded update. Larger ones
  /// are not in the caches of the ranks, and the system has no large pages for shared memory.
  static constexpr std::int64_t kSharedBytes = std::int64_t{8} << 20;
  bool fast_reduction = false;  ///< the MPI library's own sum in place of the reduction tree
  bool compress = false;        ///< nodes of the reduction tree are rounded to bfloat16
  bool error_feedback = false;  ///< with `compress`: what rounding takes away is added in the next step
  Overlap overlap = Overlap::automatic;
  /// Gradients of ranks of one host are summed in memory that all of them see.
  SharedMemory shared_memory = SharedMemory::automatic;
  /// Where NCCL does not connect GPUs, MPI sends and receives their memory.
  GpuAwareMpi gpu_aware_mpi = GpuAwareMpi::automatic;
  bool nccl_shared_gpu = false;  ///< for tests: NCCL connects ranks that share a GPU, too (nccl_hosts.h)
  std::int64_t bucket_first_bytes = std::int64_t{1} << 20, bucket_bytes = std::int64_t{25} << 20;
  /// Share of a table's rows up to which its gradient stays sparse; none: by the bytes that either form
  /// moves.
  std::optional<double> sparse_below = {};
  std::optional<double> timeout_seconds = {};    ///< none: adaptive (adaptive_timeout.h); 0: no limit
  double start_timeout_seconds = 300;            ///< of MPI's start (start_watch.h); 0: no limit
  std::optional<double> straggler_factor = 1.2;  ///< none: stragglers are not reported
  std::int64_t check_every_steps = 100;          ///< 0: variables are never compared across ranks
};

/// Options of the section `comm`.
std::span<const ParamSpec> communication_table();
/// `section` is checked against communication_table().
CommunicationOptions communication_options(const Params& section);

}  // namespace lockstep
