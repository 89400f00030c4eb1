// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/server_worker.h"

#include <algorithm>
#include <cstring>

#include "comm/flight_recorder.h"
#include "core/device.h"
#include "core/error.h"
#include "core/range.h"
#include "core/timer.h"
#include "core/trace.h"
#include "train/part_sums.h"

namespace lockstep {

namespace {

std::size_t message_bytes(const ServerLayout& layout, int server) {
  return PartBuffers(layout.elements(layout.server_rank(server))).bytes();
}

}  // namespace

ServerWorker::ServerWorker(Mailbox& mailbox, const ServerLayout& layout, const Options& options)
    : mailbox_(mailbox), layout_(layout), options_(options) {
  for (int server = 0; server < layout.servers; ++server) {
    ranges_.push_back(layout.ownership->parts(layout.server_rank(server)));
    arrived_.emplace_back(cpu_device(), message_bytes(layout, server));
  }
  for (Outgoing& outgoing : outgoing_) {
    for (int server = 0; server < layout.servers; ++server) {
      outgoing.pushes.emplace_back(cpu_device(), message_bytes(layout, server));
      outgoing.packed.emplace_back();
      if (options.rows[static_cast<std::size_t>(server)].has_tables())
        outgoing.packed.back() = Buffer(cpu_device(), message_bytes(layout, server));
    }
    outgoing.losses = Buffer(
        cpu_device(), sizeof(PushHeader) + static_cast<std::size_t>(options.leaf_doubles) * sizeof(double));
  }
}

std::size_t ServerWorker::memory_bytes() const {
  std::size_t bytes = 0;
  for (const Buffer& arrived : arrived_) bytes += arrived.size_bytes();
  for (const Outgoing& outgoing : outgoing_) {
    bytes += outgoing.losses.size_bytes();
    for (const Buffer& push : outgoing.pushes) bytes += push.size_bytes();
    for (const Buffer& packed : outgoing.packed) bytes += packed.size_bytes();
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
    // The next version, if a step of this round needs it. Servers answer when it is there.
    if (options_.pulls_ahead && asked_version_ < 0 && version + 1 < round.last - options_.staleness)
      ask(version + 1);
    const PartGradient computed = compute(ticket);
    Outgoing& outgoing = outgoing_[part % outgoing_.size()];
    finish(outgoing);
    push(ticket, computed, outgoing);
  }
  for (Outgoing& outgoing : outgoing_) finish(outgoing);
  if (asked_version_ >= 0) await_values();
  leave_out();
}

void ServerWorker::progress() {
  if (asked_version_ < 0) return;
  const auto message = next_message();
  LOCKSTEP_CHECK(!message, "message {} to a worker that computes", message->kind);
  all_there();
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

/// Also from a server that holds nothing: its answer says that it has come so far.
void ServerWorker::ask(std::int64_t version) {
  asked_version_ = version;
  answers_ = 0;
  for (int server = 0; server < layout_.servers; ++server)
    asked_.push_back(mailbox_.send(layout_.server_rank(server), static_cast<int>(ServerMessage::pull),
                                   &asked_version_, sizeof asked_version_));
}

/// Begins to receive values that have come. Returns the first message that is something else.
std::optional<Mailbox::Envelope> ServerWorker::next_message() {
  while (const auto message = mailbox_.arrived()) {
    if (message->kind != static_cast<int>(ServerMessage::values)) return message;
    Buffer& to = arrived_[static_cast<std::size_t>(layout_.server_of(message->from))];
    LOCKSTEP_CHECK(asked_version_ >= 0 && message->bytes == to.size_bytes(), "variables of {} bytes",
                   message->bytes);
    coming_.push_back(mailbox_.begin_to_receive(to.data(), message->bytes));
    ++answers_;
  }
  return std::nullopt;
}

/// Whether the values that were asked for are there, from all servers.
bool ServerWorker::all_there() {
  const auto ended = [&](Mailbox::Sent message) { return mailbox_.sent(message); };
  std::erase_if(asked_, ended);
  std::erase_if(coming_, ended);
  return answers_ == layout_.servers && asked_.empty() && coming_.empty();
}

void ServerWorker::await_values() {
  if (!all_there()) {
    const RecordedCall call("variables of a server", 0, layout_.head());
    const Timer timer;
    PollingWait wait;
    while (!all_there()) {
      const auto message = next_message();
      LOCKSTEP_CHECK(!message, "message {} instead of variables", message->kind);
      wait.pause();
    }
    seconds_waited_ += timer.seconds();
  }
  asked_version_ = -1;
}

void ServerWorker::pull(std::int64_t version, float* values) {
  const Traced traced("waiting", "for variables");
  if (asked_version_ >= 0 && asked_version_ != version) await_values();
  if (asked_version_ < 0) ask(version);
  ++versions_pulled_;
  if (all_there()) ++versions_ahead_;
  await_values();
  for (std::size_t server = 0; server < ranges_.size(); ++server) {
    const float* from = PartBuffers::values(arrived_[server]);
    for (const Range& range : ranges_[server]) {
      std::copy_n(from, range.size(), values + range.first);
      from += range.size();
    }
  }
}

void ServerWorker::push(const PartTicket& ticket, const PartGradient& part, Outgoing& to) {
  const PushHeader header{ticket.step, ticket.part};
  const auto send = [&](int server, ServerMessage kind, const Buffer& message, std::size_t bytes) {
    to.sent.push_back(
        mailbox_.send(layout_.server_rank(server), static_cast<int>(kind), message.data(), bytes));
    bytes_sent_ += static_cast<std::int64_t>(bytes);
  };
  // The losses first: when the head has a gradient, it has its losses, too.
  std::memcpy(to.losses.data(), &header, sizeof header);
  std::memcpy(static_cast<std::byte*>(to.losses.data()) + sizeof header, part.losses.data(),
              part.losses.size_bytes());
  send(0, ServerMessage::losses, to.losses, to.losses.size_bytes());
  for (int server = 0; server < layout_.servers; ++server) {
    const Buffer& message = to.pushes[static_cast<std::size_t>(server)];
    std::memcpy(message.data(), &header, sizeof header);
    float* into = PartBuffers::values(message);
    for (const Range& range : ranges_[static_cast<std::size_t>(server)]) {
      std::copy_n(part.gradient + range.first, range.size(), into);
      into += range.size();
    }
    const Buffer& packed = to.packed[static_cast<std::size_t>(server)];
    const std::size_t bytes = packed.size_bytes() == 0
                                  ? 0
                                  : options_.rows[static_cast<std::size_t>(server)].pack(
                                        PartBuffers::values(message),
                                        static_cast<std::byte*>(packed.data()) + PartBuffers::kHeaderBytes);
    if (bytes == 0) {
      send(server, ServerMessage::push, message, message.size_bytes());
    } else {
      std::memcpy(packed.data(), &header, sizeof header);
      send(server, ServerMessage::push_rows, packed, PartBuffers::kHeaderBytes + bytes);
    }
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
    if (const auto message = next_message()) {
      LOCKSTEP_CHECK(message->kind == static_cast<int>(kind), "message {} instead of {}", message->kind,
                     static_cast<int>(kind));
      seconds_waited_ += timer.seconds();
      return *message;
    }
    wait.pause();
  }
}

}  // namespace lockstep
