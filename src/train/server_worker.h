// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The part of a worker in a round (cluster.ps): takes a part from the head, gets the variables of its version
// where it has others, computes, and sends the gradient to the servers while it computes the next part.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "comm/mailbox.h"
#include "core/buffer.h"
#include "core/function_ref.h"
#include "train/server_layout.h"
#include "train/server_messages.h"

namespace lockstep {

class ServerWorker {
 public:
  /// References outlive the worker. `leaf_doubles`: of the losses of one part.
  ServerWorker(Mailbox& mailbox, const ServerLayout& layout, int leaf_doubles);

  /// Computes parts until the head says that the round ends. `values`: the flat variables, of version
  /// round.first; `changed` is called when they are another version's. compute() computes one part.
  void run(ServerRound round, float* values, FunctionRef<void()> changed,
           FunctionRef<PartGradient(const PartTicket&)> compute);

  /// Takes no part of a round.
  void leave_out();

  double seconds_waited() const { return seconds_waited_; }
  std::int64_t bytes_sent() const { return bytes_sent_; }
  std::size_t memory_bytes() const;

 private:
  /// What of one part is on its way.
  struct Outgoing {
    std::vector<Buffer> pushes;  ///< by server
    Buffer losses;
    std::vector<Mailbox::Sent> sent;
  };
  PartTicket take();
  void pull(std::int64_t version, float* values);
  void push(const PartTicket& ticket, const PartGradient& part, Outgoing& to);
  void finish(Outgoing& outgoing);
  void wait_until_sent(Mailbox::Sent message);
  Mailbox::Envelope wait_for(ServerMessage kind, const char* what, int from);

  Mailbox& mailbox_;
  const ServerLayout& layout_;
  std::vector<std::vector<Range>> ranges_;  ///< by server
  std::array<Outgoing, 2> outgoing_;
  Buffer arrived_;
  std::vector<Mailbox::Sent> asked_;
  double seconds_waited_ = 0;
  std::int64_t bytes_sent_ = 0;
};

}  // namespace lockstep
