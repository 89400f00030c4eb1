// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/server_worker.h"

#include <algorithm>
#include <cstring>

#include "comm/flight_recorder.h"
#include "core/device.h"
#include "core/error.h"
#include "core/timer.h"
#include "core/trace.h"
#include "train/part_sums.h"

namespace lockstep {

namespace {

std::size_t message_bytes(const ServerLayout& layout, int server) {
  return PartBuffers(layout.elements(layout.server_rank(server))).bytes();
}

}  // namespace

ServerWorker::ServerWorker(Mailbox& mailbox, const ServerLayout& layout, int leaf_doubles)
    : mailbox_(mailbox), layout_(layout) {
  std::size_t most = 0;
  for (int server = 0; server < layout.servers; ++server) {
    ranges_.push_back(layout.ownership->parts(layout.server_rank(server)));
    most = std::max(most, message_bytes(layout, server));
  }
  for (Outgoing& outgoing : outgoing_) {
    for (int server = 0; server < layout.servers; ++server)
      outgoing.pushes.emplace_back(cpu_device(), message_bytes(layout, server));
    outgoing.losses =
        Buffer(cpu_device(), sizeof(PushHeader) + static_cast<std::size_t>(leaf_doubles) * sizeof(double));
  }
  arrived_ = Buffer(cpu_device(), most);
}

std::size_t ServerWorker::memory_bytes() const {
  std::size_t bytes = arrived_.size_bytes();
  for (const Outgoing& outgoing : outgoing_) {
    bytes += outgoing.losses.size_bytes();
    for (const Buffer& push : outgoing.pushes) bytes += push.size_bytes();
  }
  return bytes;
}

void ServerWorker::run(ServerRound round, float* values, FunctionRef<void()> changed,
                       FunctionRef<PartGradient(const PartTicket&)> compute) {
  std::int64_t version = round.first;
  for (std::size_t part = 0;; ++part) {
    const PartTicket ticket = take();
    if (ticket.step < 0) break;
    LOCKSTEP_CHECK(ticket.step >= round.first && ticket.step < round.last, "a part of step {}", ticket.step);
    if (ticket.version != version) {
      pull(ticket.version, values);
      version = ticket.version;
      changed();
    }
    const PartGradient computed = compute(ticket);
    Outgoing& outgoing = outgoing_[part % outgoing_.size()];
    finish(outgoing);
    push(ticket, computed, outgoing);
  }
  for (Outgoing& outgoing : outgoing_) finish(outgoing);
  leave_out();
}

void ServerWorker::leave_out() {
  Outgoing& last = outgoing_.front();
  for (int server = 0; server < layout_.servers; ++server)
    last.sent.push_back(
        mailbox_.send(layout_.server_rank(server), static_cast<int>(ServerMessage::done), nullptr, 0));
  finish(last);
}

PartTicket ServerWorker::take() {
  const Traced traced("waiting", "for a part");
  const Mailbox::Sent asked =
      mailbox_.send(layout_.head(), static_cast<int>(ServerMessage::take), nullptr, 0);
  wait_for(ServerMessage::ticket, "a part of the batch", layout_.head());
  PartTicket ticket;
  mailbox_.receive(&ticket, sizeof ticket);
  wait_until_sent(asked);
  return ticket;
}

void ServerWorker::pull(std::int64_t version, float* values) {
  const Traced traced("waiting", "for variables");

  asked_.clear();
  int expected = 0;
  // Also from a server that holds nothing: its answer says that it has come so far.
  for (int server = 0; server < layout_.servers; ++server) {
    asked_.push_back(mailbox_.send(layout_.server_rank(server), static_cast<int>(ServerMessage::pull),
                                   &version, sizeof version));
    ++expected;
  }
  for (; expected > 0; --expected) {
    const Mailbox::Envelope envelope =
        wait_for(ServerMessage::values, "variables of a server", layout_.head());
    mailbox_.receive(arrived_.data(), envelope.bytes);
    const float* from = PartBuffers::values(arrived_);
    for (const Range& range : ranges_[static_cast<std::size_t>(layout_.server_of(envelope.from))]) {
      std::copy_n(from, range.size(), values + range.first);
      from += range.size();
    }
  }
  for (const Mailbox::Sent sent : asked_) wait_until_sent(sent);
}

void ServerWorker::push(const PartTicket& ticket, const PartGradient& part, Outgoing& to) {
  const PushHeader header{ticket.step, ticket.part};
  const auto send = [&](int server, ServerMessage kind, const Buffer& message) {
    to.sent.push_back(mailbox_.send(layout_.server_rank(server), static_cast<int>(kind), message.data(),
                                    message.size_bytes()));
    bytes_sent_ += static_cast<std::int64_t>(message.size_bytes());
  };
  // The losses first: when the head has a gradient, it has its losses, too.
  std::memcpy(to.losses.data(), &header, sizeof header);
  std::memcpy(static_cast<std::byte*>(to.losses.data()) + sizeof header, part.losses.data(),
              part.losses.size_bytes());
  send(0, ServerMessage::losses, to.losses);
  for (int server = 0; server < layout_.servers; ++server) {
    const Buffer& message = to.pushes[static_cast<std::size_t>(server)];
    std::memcpy(message.data(), &header, sizeof header);
    float* into = PartBuffers::values(message);
    for (const Range& range : ranges_[static_cast<std::size_t>(server)]) {
      std::copy_n(part.gradient + range.first, range.size(), into);
      into += range.size();
    }
    send(server, ServerMessage::push, message);
  }
}

void ServerWorker::wait_until_sent(Mailbox::Sent message) {
  if (mailbox_.sent(message)) return;
  const RecordedCall call("sending a question to a server", 0);
  PollingWait wait;
  while (!mailbox_.sent(message)) wait.pause();
}

/// Waits until what is on its way has left.
void ServerWorker::finish(Outgoing& outgoing) {
  if (outgoing.sent.empty()) return;
  const RecordedCall call("sending a gradient to servers", 0);
  const Timer timer;
  PollingWait wait;
  while (true) {
    std::erase_if(outgoing.sent, [&](Mailbox::Sent sent) { return mailbox_.sent(sent); });
    if (outgoing.sent.empty()) break;
    wait.pause();
  }
  seconds_waited_ += timer.seconds();
}

Mailbox::Envelope ServerWorker::wait_for(ServerMessage kind, const char* what, int from) {
  const RecordedCall call(what, 0, from);
  const Timer timer;
  PollingWait wait;
  while (true) {
    if (const auto message = mailbox_.arrived()) {
      LOCKSTEP_CHECK(message->kind == static_cast<int>(kind), "message {} instead of {}", message->kind,
                     static_cast<int>(kind));
      seconds_waited_ += timer.seconds();
      return *message;
    }
    wait.pause();
  }
}

}  // namespace lockstep
