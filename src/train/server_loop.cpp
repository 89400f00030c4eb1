// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/server_loop.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "comm/flight_recorder.h"
#include "core/device.h"
#include "core/error.h"
#include "core/timer.h"

namespace lockstep {

namespace {

/// A wait in the flight recorder, from the first time that nothing is there to do.
class Idle {
 public:
  ~Idle() { end(); }
  void begin(const char* what) {
    if (call_ >= 0) return;
    call_ = flight_recorder().begin(what, 0, -1);
    since_.restart();
  }
  void end() {
    if (call_ < 0) return;
    flight_recorder().end(call_);
    call_ = -1;
    seconds_ += since_.seconds();
  }
  double seconds() const { return seconds_; }

 private:
  FlightRecorder::Ticket call_ = -1;
  Timer since_;
  double seconds_ = 0;
};

}  // namespace

ServerLoop::ServerLoop(Mailbox& mailbox, const ServerLayout& layout, const Options& options,
                       const NodeArithmetic& arithmetic, ThreadPool& pool)
    : mailbox_(mailbox), layout_(layout), options_(options), buffers_(layout.elements(options.rank)) {
  const auto slots = static_cast<std::size_t>(options.staleness) + 1;
  const auto parts = static_cast<std::size_t>(layout.parts());
  sums_.reserve(slots);
  for (std::size_t i = 0; i < slots; ++i) {
    sums_.emplace_back(layout.parts(), !options.aggregate, buffers_, arithmetic, pool);
    versions_.push_back(Buffer(cpu_device(), buffers_.bytes()));
    losses_.emplace_back(is_head() ? parts * static_cast<std::size_t>(options.leaf_doubles) : 0);
    losses_there_.emplace_back(parts);
    accepted_.emplace_back(parts);
  }
  readers_.resize(slots);
  is_accepted_.resize(slots);
  scratch_ =
      Buffer(cpu_device(),
             sizeof(PushHeader) + static_cast<std::size_t>(options.leaf_doubles) * sizeof(double) + parts);
  if (options_.rows.has_tables()) packed_ = Buffer(cpu_device(), buffers_.bytes());
  LOCKSTEP_REQUIRE(buffers_.bytes() <= Mailbox::kMostBytes, ErrorKind::config,
                   "a server holds {} bytes of variables, more than one message can carry (2 GiB); give more "
                   "servers (cluster.ps)",
                   buffers_.bytes());
}

std::size_t ServerLoop::memory_bytes() const {
  // Versions, and at most the parts of all steps in progress.
  return packed_.size_bytes() +
         versions_.size() * buffers_.bytes() * (1 + static_cast<std::size_t>(layout_.parts()));
}

void ServerLoop::run(ServerRound round, FunctionRef<void(const Sum&)> update,
                     FunctionRef<void(float*)> values) {
  round_ = round;
  version_ = next_step_ = round.first;
  next_part_ = workers_done_ = 0;
  for (std::size_t i = 0; i < sums_.size(); ++i) clear(i);
  finished_ = false;
  keep_version(values);
  PollingWait wait;
  Idle idle;
  while (!finished_ || workers_done_ < layout_.workers()) {
    const auto message = mailbox_.arrived();
    if (message) {
      idle.end();
      wait.reset();
      handle(*message);
    }
    while (!finished_ && step_is_complete()) {
      const std::size_t at = slot(version_);
      update({version_, sums_[at].total(), accepted_[at]});
      finished_ = version_ + 1 == round.last;  // the last update comes after the meeting
      if (finished_) break;
      clear(at);
      ++version_;
      keep_version(values);
    }
    answer_pulls();
    if (is_head()) give_parts();
    collect_sent();
    if (message) continue;
    idle.begin(finished_ ? "the end of the workers' round" : "gradients of workers");
    wait.pause();
  }
  idle.end();
  seconds_waited_ += idle.seconds();
  const RecordedCall ending("sending the end of the round to workers", 0);
  while (!tickets_.empty() || !masks_.empty()) {
    collect_sent();
    wait.pause();
  }
}

void ServerLoop::clear(std::size_t slot) {
  sums_[slot].clear();
  std::ranges::fill(losses_[slot], 0.0);
  std::ranges::fill(losses_there_[slot], 0);
  is_accepted_[slot] = 0;
}

void ServerLoop::handle(const Mailbox::Envelope& message) {
  switch (static_cast<ServerMessage>(message.kind)) {
    case ServerMessage::take:
      mailbox_.receive(nullptr, 0);
      takers_.push_back(message.from);
      break;
    case ServerMessage::pull: {
      std::int64_t version = 0;
      mailbox_.receive(&version, sizeof version);
      pulls_.push_back({message.from, version});
      break;
    }
    case ServerMessage::push:
    case ServerMessage::push_rows:
      receive_push(message);
      break;
    case ServerMessage::losses:
      receive_losses(message);
      break;
    case ServerMessage::accepted: {
      mailbox_.receive(scratch_.data(), message.bytes);
      PushHeader header;
      std::memcpy(&header, scratch_.data(), sizeof header);
      const char* const mask = static_cast<const char*>(scratch_.data()) + sizeof header;
      std::copy_n(mask, layout_.parts(), accepted_[slot(header.step)].begin());
      is_accepted_[slot(header.step)] = 1;
      break;
    }
    case ServerMessage::done:
      mailbox_.receive(nullptr, 0);
      ++workers_done_;
      break;
    default:
      LOCKSTEP_CHECK(false, "message {} to a server", message.kind);
  }
}

/// The update of its step is made of other parts.
bool ServerLoop::is_late(const PushHeader& header) const {
  const std::size_t at = slot(header.step);
  return header.step < version_ ||
         (is_accepted_[at] != 0 && accepted_[at][static_cast<std::size_t>(header.part)] == 0);
}

void ServerLoop::receive_push(const Mailbox::Envelope& message) {
  const bool in_rows = message.kind == static_cast<int>(ServerMessage::push_rows);
  LOCKSTEP_CHECK(in_rows ? message.bytes < buffers_.bytes() : message.bytes == buffers_.bytes(),
                 "a gradient of {} bytes", message.bytes);
  Buffer buffer = buffers_.take();
  if (in_rows) {
    mailbox_.receive(packed_.data(), message.bytes);
    std::memcpy(buffer.data(), packed_.data(), sizeof(PushHeader));
    options_.rows.unpack(static_cast<const std::byte*>(packed_.data()) + PartBuffers::kHeaderBytes,
                         message.bytes - PartBuffers::kHeaderBytes, PartBuffers::values(buffer));
  } else {
    mailbox_.receive(buffer.data(), message.bytes);
  }
  PushHeader header;
  std::memcpy(&header, buffer.data(), sizeof header);
  PartSums& sum = sums_[slot(header.step)];
  if (is_late(header)) {
    ++dropped_;
    buffers_.give_back(std::move(buffer));
    return;
  }
  sum.add(static_cast<int>(header.part), std::move(buffer));
}

void ServerLoop::receive_losses(const Mailbox::Envelope& message) {
  mailbox_.receive(scratch_.data(), message.bytes);
  PushHeader header;
  std::memcpy(&header, scratch_.data(), sizeof header);
  if (is_late(header)) return;
  const auto count = static_cast<std::size_t>(options_.leaf_doubles);
  std::memcpy(losses_[slot(header.step)].data() + static_cast<std::size_t>(header.part) * count,
              static_cast<const std::byte*>(scratch_.data()) + sizeof header, count * sizeof(double));
  losses_there_[slot(header.step)][static_cast<std::size_t>(header.part)] = 1;
}

/// Of the first step without a sum: all its parts are there, or those that the head has accepted.
bool ServerLoop::step_is_complete() {
  const std::size_t at = slot(version_);
  PartSums& sum = sums_[at];
  std::vector<char>& accepted = accepted_[at];
  const auto all_there = [&](const std::vector<char>& there) { return std::ranges::count(there, 0) == 0; };
  if (!options_.aggregate) {
    if (sum.added() < layout_.parts() || (is_head() && !all_there(losses_there_[at]))) return false;
    std::ranges::fill(accepted, 1);
    return true;
  }
  if (is_head() && is_accepted_[at] == 0) {
    if (sum.added() < *options_.aggregate) return false;
    accept(at);
  }
  if (is_accepted_[at] == 0) return false;
  for (std::size_t part = 0; part < accepted.size(); ++part)
    if (accepted[part] != 0 && !sum.has(static_cast<int>(part))) return false;
  sum.close(accepted);
  return true;
}

/// On the head: the parts that are there make the update. A part's losses came before its gradient.
void ServerLoop::accept(std::size_t slot) {
  is_accepted_[slot] = 1;
  std::vector<char>& accepted = accepted_[slot];
  std::vector<char> message(sizeof(PushHeader) + accepted.size());
  const PushHeader header{version_, 0};
  std::memcpy(message.data(), &header, sizeof header);
  for (std::size_t part = 0; part < accepted.size(); ++part) {
    accepted[part] = sums_[slot].has(static_cast<int>(part)) ? 1 : 0;
    message[sizeof header + part] = accepted[part];
    if (accepted[part] == 0)
      std::fill_n(losses_[slot].begin() + static_cast<std::ptrdiff_t>(part) * options_.leaf_doubles,
                  options_.leaf_doubles, 0.0);
  }
  for (int server = 1; server < layout_.servers; ++server) {
    masks_.emplace_back(message, 0);
    masks_.back().second =
        mailbox_.send(layout_.server_rank(server), static_cast<int>(ServerMessage::accepted),
                      masks_.back().first.data(), message.size());
  }
}

/// The present values become the version that pulls get.
void ServerLoop::keep_version(FunctionRef<void(float*)> values) {
  const std::size_t at = slot(version_);
  std::vector<Mailbox::Sent>& readers = readers_[at];
  const RecordedCall call("sending variables to workers", 0);
  PollingWait wait;
  while (!readers.empty()) {
    std::erase_if(readers, [&](Mailbox::Sent sent) { return mailbox_.sent(sent); });
    if (!readers.empty()) wait.pause();
  }
  const ValuesHeader header{version_};
  std::memcpy(versions_[at].data(), &header, sizeof header);
  values(PartBuffers::values(versions_[at]));
}

void ServerLoop::answer_pulls() {
  const std::int64_t oldest = std::max(round_.first, version_ - static_cast<std::int64_t>(sums_.size()) + 1);
  std::erase_if(pulls_, [&](const Pull& pull) {
    if (pull.version > version_) return false;
    // A version that is gone is asked for by a worker whose part is dropped, only.
    const std::size_t at = slot(std::max(pull.version, oldest));
    std::erase_if(readers_[at], [&](Mailbox::Sent sent) { return mailbox_.sent(sent); });
    readers_[at].push_back(mailbox_.send(pull.worker, static_cast<int>(ServerMessage::values),
                                         versions_[at].data(), buffers_.bytes()));
    bytes_sent_ += static_cast<std::int64_t>(buffers_.bytes());
    return true;
  });
}

/// To the workers that ask: the next part whose variables are there or will be, or the end of the round.
void ServerLoop::give_parts() {
  while (!takers_.empty()) {
    if (next_step_ < version_) {  // the update did not wait for its last parts
      next_step_ = version_;
      next_part_ = 0;
    }
    PartTicket ticket;
    if (!finished_ && next_step_ < round_.last) {
      if (next_step_ > version_ + options_.staleness) return;
      ticket = {next_step_, next_part_, std::max(round_.first, next_step_ - options_.staleness)};
      if (++next_part_ == layout_.parts()) {
        ++next_step_;
        next_part_ = 0;
      }
    }
    tickets_.emplace_back(ticket, 0);
    tickets_.back().second = mailbox_.send(takers_.front(), static_cast<int>(ServerMessage::ticket),
                                           &tickets_.back().first, sizeof(PartTicket));
    takers_.pop_front();
  }
}

void ServerLoop::collect_sent() {
  while (!tickets_.empty() && mailbox_.sent(tickets_.front().second)) tickets_.pop_front();
  while (!masks_.empty() && mailbox_.sent(masks_.front().second)) masks_.pop_front();
}

}  // namespace lockstep
