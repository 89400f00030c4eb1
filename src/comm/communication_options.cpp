// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/communication_options.h"

#include "config/option.h"

namespace lockstep {

namespace {

using Options = CommunicationOptions;

std::int64_t bytes_of_megabytes(const Params& section, const ParamSpec& option) {
  return static_cast<std::int64_t>(section.real(option.name) * (1 << 20));
}

constexpr ParamSpec kTable[] = {
    option_as<is_second_choice, &Options::fast_reduction>(
        ParamType::string, "reduction", "tree", one_of("tree|fast"),
        "tree: the same bits on any number of ranks. fast: the sum of the MPI library, whose bits may depend "
        "on the number of ranks."),
    option_as<is_second_choice, &Options::compress>(
        ParamType::string, "compress", "none", one_of("none|bfloat16"),
        "bfloat16: ranks send 16 bits per element of a gradient. Every node of the tree is rounded to "
        "bfloat16 and added in float32, also inside a rank: the bits are the same on any number of ranks, "
        "but not those of none (docs/compression.md)."),
    option<&Options::error_feedback>(
        "error_feedback", "false", one_of("true|false"),
        "With compress: what the rounding of a node takes away is added to it in the next step. It takes 4 "
        "bytes for each weight and node of the tree (2 x shards - 1), divided among the ranks, and as many "
        "in checkpoints (docs/compression.md)."),
    option<&Options::overlap>("overlap", "auto", one_of("auto|on|off"),
                              "Sum gradients in a communication thread while the backward pass computes "
                              "others. auto: on if the rank has a spare core or a GPU.",
                              Change::free),
    option<&Options::shared_memory>(
        "shared_memory", "auto", one_of("auto|on|off"),
        "Ranks of one host sum gradients in memory that all of them see, instead of sending messages; only "
        "if all ranks are on one host and compute on CPUs. auto: with optimizer.shard, for gradients of at "
        "most 8 MB. The results are the same.",
        Change::free),
    option<&Options::gpu_aware_mpi>(
        "gpu_aware_mpi", "auto", one_of("auto|on|off"),
        "Where NCCL does not connect GPUs (it is missing, or ranks share a GPU), MPI sends and receives GPU "
        "memory itself, in place of copies through the host. auto: if the MPI library says that it can. on: "
        "without asking it. The results are the same.",
        Change::free),
    option<&Options::nccl_shared_gpu>(
        "nccl_shared_gpu", "false", one_of("true|false"),
        "For tests of NCCL on one card, VERY SLOW: NCCL connects ranks that share a GPU, too, which it "
        "otherwise "
        "refuses. Each rank counts as a host of its own, so messages pass through sockets. The results are "
        "the same.",
        Change::free),
    option_as<bytes_of_megabytes, &Options::bucket_first_bytes>(
        ParamType::real, "bucket_first_mb", "1.0", above(0).up_to(1e6, "MB"),
        "Size of the first gradient bucket: small, so that communication starts early.", Change::free),
    option_as<bytes_of_megabytes, &Options::bucket_bytes>(
        ParamType::real, "bucket_mb", "25.0", above(0).up_to(1e6, "MB"),
        "Size of the other gradient buckets.", Change::free),
    option<&Options::sparse_below>(
        "sparse_below", "null", between(0, 1).or_null(),
        "The gradient of a table (embedding) stays sparse, as rows and values, if a step can touch at most "
        "this share of the rows. null: a half on CPUs, a third on one GPU, 4 to 7 percent on several, where "
        "rows pass through the host. The results are the same either way.",
        Change::free),
    option<&Options::timeout_seconds>(
        "timeout_seconds", "null", between(0, 1e9, "seconds").or_null(),
        "A wait for other ranks that takes longer ends the run with a message. The limit is ten times as "
        "long while a rank evaluates, saves or reads. null: the larger of 60 s and five times the slowest of "
        "the first ten steps, and 300 s during those. 0: no limit.",
        Change::free),
    option<&Options::start_timeout_seconds>("start_timeout_seconds", "300", between(0, 1e9, "seconds"),
                                            "A start of MPI that takes longer ends the run with a message: a "
                                            "rank is stopped, or was not started. 0: no limit.",
                                            Change::free),
    option<&Options::straggler_factor>(
        "straggler_factor", "1.2", above(1).up_to(1e6).or_null(),
        "Report a rank whose own work takes more than this many times the median of all ranks in three "
        "consecutive windows of 100 steps. null: never.",
        Change::free),
    option<&Options::check_every_steps>(
        "check_every_steps", "100", between(0, 1e12),
        "Compare a hash of the variables across ranks after every this many steps. 0: never.", Change::free),
};

}  // namespace

std::span<const ParamSpec> communication_table() { return kTable; }

CommunicationOptions communication_options(const Params& section) { return section.as<Options>(); }

}  // namespace lockstep
