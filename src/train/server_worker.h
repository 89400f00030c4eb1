// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The part of a worker in a round (cluster.ps): takes a part from the head, gets the variables of its version
// where it has others, computes, and sends the gradient to the servers while it computes the next part. The
// variables of the next version come while it computes, if progress() is called meanwhile.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "comm/mailbox.h"
#include "core/buffer.h"
#include "core/function_ref.h"
#include "core/range.h"
#include "train/server_layout.h"
#include "train/server_messages.h"
#include "train/table_rows.h"

namespace lockstep {

class ServerWorker {
 public:
  struct Options {
    int leaf_doubles = 0;  ///< of the losses of one part
    int staleness = 0;
    std::vector<TableRows> rows = {};  ///< by server
    /// Asks for variables before it needs them. A server keeps them until they have left: not where it must
    /// not wait for a worker (cluster.aggregate).
    bool pulls_ahead = true;
  };
  /// References outlive the worker.
  ServerWorker(Mailbox& mailbox, const ServerLayout& layout, const Options& options);

  /// Computes parts until the head says that the round ends. `values`: the flat variables, of version
  /// round.first; `changed` is called when they are another version's. compute() computes one part.
  void run(ServerRound round, float* values, FunctionRef<void()> changed,
           FunctionRef<PartGradient(const PartTicket&)> compute);

  /// Receives what has come meanwhile, without waiting. To be called now and then inside compute().
  void progress();

  /// Takes no part of a round.
  void leave_out();

  double seconds_waited() const { return seconds_waited_; }
  std::int64_t bytes_sent() const { return bytes_sent_; }
  /// The number of versions of variables that were there already when they were needed.
  std::int64_t versions_ahead() const { return versions_ahead_; }
  std::int64_t versions_pulled() const { return versions_pulled_; }
  std::size_t memory_bytes() const;

 private:
  /// What of one part is on its way.
  struct Outgoing {
    std::vector<Buffer> pushes;  ///< by server
    std::vector<Buffer> packed;  ///< by server; empty for one without tables
    Buffer losses;
    std::vector<Mailbox::Sent> sent;
  };
  PartTicket take();
  void ask(std::int64_t version);
  bool all_there();
  void await_values();
  void pull(std::int64_t version, float* values);
  std::optional<Mailbox::Envelope> next_message();
  void push(const PartTicket& ticket, const PartGradient& part, Outgoing& to);
  void finish(Outgoing& outgoing);
  void wait_until_sent(Mailbox::Sent message);
  Mailbox::Envelope wait_for(ServerMessage kind, const char* what, int from);

  Mailbox& mailbox_;
  const ServerLayout& layout_;
  std::vector<std::vector<Range>> ranges_;  ///< by server
  std::array<Outgoing, 2> outgoing_;
  const Options options_;
  // The version that was asked for; -1: none.
  std::int64_t asked_version_ = -1;
  int answers_ = 0;              ///< servers whose values have come, or are coming
  std::vector<Buffer> arrived_;  ///< by server: a ValuesHeader and the values
  std::vector<Mailbox::Sent> asked_, coming_;
  std::int64_t versions_ahead_ = 0, versions_pulled_ = 0;
  double seconds_waited_ = 0;
  std::int64_t bytes_sent_ = 0;
};

}  // namespace lockstep
