// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Messages between two ranks at any time, for ranks that are not in the same call: a message waits until its
// receiver asks what has arrived. Messages from one rank to another arrive in the order of their sending.
//
// One thread of a rank uses its mailbox. Every failure throws Error(communication). Nothing here waits but
// receive(), for the rest of a message that has arrived. A large message moves in calls of this class only.
// Whoever waits for a message polls, under a
// RecordedCall, so that the watchdog can tell what the wait was for.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "comm/communicator.h"

namespace lockstep {

class Mailbox {
 public:
  /// The largest message.
  static constexpr std::size_t kMostBytes = (std::size_t{1} << 31) - 1;

  struct Envelope {
    int from = -1;
    int kind = 0;
    std::size_t bytes = 0;
  };
  using Sent = int;  ///< names a message on its way

  /// Collective. For the ranks of an MpiCommunicator, with a message space of its own.
  static std::unique_ptr<Mailbox> open(Communicator& ranks, std::string name);
  ~Mailbox();
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  /// The next message that has arrived and is not received yet; none: nothing has. Never waits. The caller
  /// receives it before it asks again.
  std::optional<Envelope> arrived();
  /// Receives the message that arrived() has named: `bytes` of it, all there are.
  void receive(void* data, std::size_t bytes);
  /// Begins receive() without a wait: `data` is there when sent() says so.
  Sent begin_to_receive(void* data, std::size_t bytes);
  /// Begins to send. `data` stays as it is until sent(). `kind` is 0 to 1000.
  Sent send(int to, int kind, const void* data, std::size_t bytes);
  /// Whether the memory of a message may be used again. Once true, the name is not valid any more.
  bool sent(Sent message);

 private:
  struct Native;
  Mailbox(std::unique_ptr<Native> native, std::string name);
  void check(int code, const char* call) const;

  std::size_t free_request();

  std::unique_ptr<Native> native_;
  std::string name_;
};

/// A wait that polls: gives the core away, and sleeps when nothing comes for a while.
class PollingWait {
 public:
  /// Something came.
  void reset() { polls_ = 0; }
  /// Nothing came.
  void pause();

 private:
  int polls_ = 0;
};

}  // namespace lockstep
