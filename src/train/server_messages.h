// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What workers and servers tell each other between two meetings (docs/cluster.md). All ranks run the same
// build, so structs travel as bytes.
//
//   take      worker to head        asks for a part to compute
//   ticket    head to worker        the part; or the end of the round
//   pull      worker to servers     asks for the variables of a version
//   values    server to worker      a ValuesHeader and the values that the server holds
//   push      worker to servers     a PushHeader and the part's gradient of what the server holds
//   push_rows worker to servers     the same, of tables only the rows that are not zero (table_rows.h)
//   losses    worker to head        a PushHeader and the leaves of the part's microshards (LossReport)
//   accepted  head to servers       the parts that make an update, with cluster.aggregate
//   done      worker to servers     after its last push of the round
#pragma once

#include <cstdint>
#include <span>

namespace lockstep {

enum class ServerMessage : int { take = 1, ticket, pull, values, push, push_rows, losses, accepted, done };

/// A part of a step, and the version of the variables for it: that of `version` updates.
struct PartTicket {
  std::int64_t step = -1;  ///< -1: the round has ended
  std::int64_t part = 0;
  std::int64_t version = 0;
};

struct PushHeader {
  std::int64_t step = 0, part = 0;
};

struct ValuesHeader {
  std::int64_t version = 0;
};

/// A part that was computed.
struct PartGradient {
  const float* gradient;           ///< flat, as in the variable store
  std::span<const double> losses;  ///< of its microshards
};

/// Steps [first, last) between two meetings.
struct ServerRound {
  std::int64_t first = 0, last = 0;
};

}  // namespace lockstep
