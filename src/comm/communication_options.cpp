// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/communication_options.h"

namespace lockstep {

namespace {

using enum ParamType;

constexpr ParamSpec kTable[] = {
    {"reduction", string, "tree", "tree|fast",
     "tree: the same bits on any number of ranks. fast: the sum of the MPI library, whose bits may "
     "depend on the number of ranks."},
    {"compress", string, "none", "none|bfloat16",
     "bfloat16: ranks send 16 bits per element of a gradient. Every node of the tree is rounded to bfloat16 "
     "and "
     "added in float32, also inside a rank: the bits are the same on any number of ranks, but not those of "
     "none (docs/compression.md)."},
    {"error_feedback", boolean, "false", "true|false",
     "With compress: what the rounding of a node takes away is added to it in the next step. It takes 4 "
     "bytes "
     "for each weight and node of the tree (2 x shards - 1), divided among the ranks, and as many in "
     "checkpoints (docs/compression.md)."},
    {"overlap", string, "auto", "auto|on|off",
     "Sum gradients in a communication thread while the backward pass computes others. auto: on if the "
     "rank has a spare core or a GPU.",
     Change::free},
    {"shared_memory", string, "auto", "auto|on|off",
     "Ranks of one host sum gradients in memory that all of them see, instead of sending messages; only if "
     "all "
     "ranks are on one host and compute on CPUs. auto: with optimizer.shard, for gradients of at most 8 MB. "
     "The "
     "results are the same.",
     Change::free},
    {"gpu_aware_mpi", string, "auto", "auto|on|off",
     "Where NCCL does not connect GPUs (it is missing, or ranks share a GPU), MPI sends and receives GPU "
     "memory "
     "itself, in place of copies through the host. auto: if the MPI library says that it can. on: without "
     "asking it. The results are the same.",
     Change::free},
    {"bucket_first_mb", real, "1.0", "(0, 1e6] MB",
     "Size of the first gradient bucket: small, so that communication starts early.", Change::free},
    {"bucket_mb", real, "25.0", "(0, 1e6] MB", "Size of the other gradient buckets.", Change::free},
    {"sparse_below", real, "null", "[0, 1] or null",
     "The gradient of a table (embedding) stays sparse, as rows and values, if a step can touch at most "
     "this share of the rows. null: a half on CPUs, a third on one GPU, 4 to 7 percent on several, where "
     "rows pass "
     "through the host. The results are the same either way.",
     Change::free},
    {"timeout_seconds", real, "null", "[0, 1e9] seconds or null",
     "A wait for other ranks that takes longer ends the run with a message. The limit is ten times as "
     "long while a rank evaluates, saves or reads. null: the larger of 60 s and five times the slowest "
     "of the first ten steps, and 300 s during those. 0: no limit.",
     Change::free},
    {"start_timeout_seconds", real, "300", "[0, 1e9] seconds",
     "A start of MPI that takes longer ends the run with a message: a rank is stopped, or was not started. "
     "0: no limit.",
     Change::free},
    {"straggler_factor", real, "1.2", "(1, 1e6] or null",
     "Report a rank whose own work takes more than this many times the median of all ranks in three "
     "consecutive windows of 100 steps. null: never.",
     Change::free},
    {"check_every_steps", integer, "100", "[0, 1e12]",
     "Compare a hash of the variables across ranks after every this many steps. 0: never.", Change::free},
};

std::int64_t bytes_of(double megabytes) { return static_cast<std::int64_t>(megabytes * (1 << 20)); }

}  // namespace

std::span<const ParamSpec> communication_table() { return kTable; }

CommunicationOptions communication_options(const Params& section) {
  CommunicationOptions options;
  const std::string& overlap = section.string("overlap");
  options.fast_reduction = section.string("reduction") == "fast";
  options.compress = section.string("compress") == "bfloat16";
  options.error_feedback = section.boolean("error_feedback");
  options.overlap = overlap == "on"    ? CommunicationOptions::Overlap::on
                    : overlap == "off" ? CommunicationOptions::Overlap::off
                                       : CommunicationOptions::Overlap::automatic;
  const std::string& shared = section.string("shared_memory");
  options.shared_memory = shared == "on"    ? CommunicationOptions::SharedMemory::on
                          : shared == "off" ? CommunicationOptions::SharedMemory::off
                                            : CommunicationOptions::SharedMemory::automatic;
  const std::string& gpu_aware = section.string("gpu_aware_mpi");
  options.gpu_aware_mpi = gpu_aware == "on"    ? CommunicationOptions::GpuAwareMpi::on
                          : gpu_aware == "off" ? CommunicationOptions::GpuAwareMpi::off
                                               : CommunicationOptions::GpuAwareMpi::automatic;
  options.bucket_first_bytes = bytes_of(section.real("bucket_first_mb"));
  options.bucket_bytes = bytes_of(section.real("bucket_mb"));
  options.sparse_below = section.optional_real("sparse_below");
  options.timeout_seconds = section.optional_real("timeout_seconds");
  options.start_timeout_seconds = section.real("start_timeout_seconds");
  options.straggler_factor = section.optional_real("straggler_factor");
  options.check_every_steps = section.integer("check_every_steps");
  return options;
}

}  // namespace lockstep
