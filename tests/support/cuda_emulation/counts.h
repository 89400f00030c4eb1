// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What the emulated GPU was asked to do: for bench/gpu/step_counts and for tests of what a step may cost.
// Needs no other header of the emulation.
#pragma once

#include <cstdint>

namespace lockstep::emulation {

struct Counts {
  std::int64_t kernels = 0;           ///< kernels and library products, in graphs and alone
  std::int64_t blocks = 0;            ///< of our own kernels
  std::int64_t calls = 0;             ///< calls of the host that put work into a stream: a graph is one
  std::int64_t graphs = 0;            ///< of them, launches of graphs
  std::int64_t copies = 0;            ///< asynchronous copies and clears
  std::int64_t waits = 0;             ///< calls that wait for work that no earlier wait has seen done
  std::int64_t queries = 0;           ///< queries of streams and events
  std::int64_t nccl_calls = 0;        ///< groups of messages, and collective calls
  std::int64_t nccl_queries = 0;      ///< queries of NCCL's asynchronous state
  std::int64_t nccl_connections = 0;  ///< first contacts of a group with a rank, or with all of them
  /// Ends of messages in memory that is neither registered nor in a window of the group.
  std::int64_t nccl_unregistered = 0;
  std::int64_t uploaded_bytes = 0, downloaded_bytes = 0, moved_bytes = 0, nccl_sent_bytes = 0;
};

/// Since the last reset. Thread-safe.
Counts counts();
void reset_counts();

/// From now on kernels, library products and NCCL's messages are counted and not run, and large allocations
/// share their memory: for nets that are too large for the emulation. Results mean nothing. Call it before
/// the first allocation.
void count_only();

}  // namespace lockstep::emulation
