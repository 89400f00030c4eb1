// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The file of a profile, in Google's Trace Event Format: one process per rank, all on the clock of rank 0,
// with arrows from sends to receives. On-disk names: do not change (`lockstep trace` reads them).
//
//   {"displayTimeUnit": "ms",
//    "otherData": {"format": 1, "begin_time": 1700000000.5,
//                  "clocks": [{"rank": 0, "offset_us": 0.0, "error_us": 0.0}, ...]},
//    "traceEvents": [...]}
//
// begin_time: seconds since 1970 at ts 0. Spans are complete events ("X"), times in microseconds. An arrow is
// a pair of flow events ("s", "f") with one id. The arrow of a message leaves at the begin of the call that
// sends and arrives at the end of the call that receives. The arrows of a collective call leave the rank that
// came last, and have args.waited_us: how long the other rank had waited for it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "comm/clock_offsets.h"
#include "core/trace.h"

namespace lockstep {

/// The number of a rank's thread (from 1) in a file. Never that of the rank: Perfetto takes a thread with the
/// number of its process for the main one.
inline int trace_thread_id(int rank, int thread) { return 1000 * rank + thread; }

/// One end of a message, or one rank of a collective call. Plain bytes: ranks send it to rank 0.
struct PlacedMessage {
  TraceMessage message;  ///< its times are those of the file, in nanoseconds
  std::int32_t rank = 0, thread = 0;
};

/// Spans and names of a rank, joined by commas. `shift_ns` is added to all times.
std::string span_events(std::span<const ThreadTrace> threads, int rank, const std::string& host,
                        std::int64_t shift_ns);
/// Messages among `ranks` ranks. The thread is that of span_events().
std::vector<PlacedMessage> placed_messages(std::span<const ThreadTrace> threads, int rank, int ranks,
                                           std::int64_t shift_ns);
/// Arrows of all messages of which both ends are there, joined by commas; empty: none. Left out are messages
/// to oneself, and those that would arrive more than `error_ns` before they leave: the calls of a GPU's
/// communicator only begin its work.
std::string flow_events(std::vector<PlacedMessage> messages, int ranks, std::int64_t error_ns);
/// The whole file. `events`: joined lists, of which some may be empty.
std::string trace_file(double begin_time, std::span<const ClockOffset> clocks,
                       std::span<const std::string> events);

}  // namespace lockstep
