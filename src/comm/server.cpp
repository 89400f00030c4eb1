// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/server.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "core/error.h"
#include "core/run_signals.h"
#include "core/timer.h"

namespace lockstep {

namespace {

constexpr int kEnded = 1;

}  // namespace

Server::Server(CommEnvironment& ranks, const ClusterDescription& description, int servers)
    : world_(ranks.world()), roles_(cluster_roles(ranks.world(), ranks.hosts(), description, servers)) {
  if (world_.size() > 1) mailbox_ = Mailbox::open(world_, "server");
}
Server::~Server() = default;

std::string Server::target() const {
  const std::string& host = roles_.is_evaluator()
                                ? std::string()
                                : roles_.cluster.task_address(roles_.task_type(), roles_.task_index());
  return host.empty() ? fmt::format("rank {}", roles_.rank) : fmt::format("{}, rank {}", host, roles_.rank);
}

bool Server::join(double most_seconds) {
  if (!mailbox_) return true;
  std::vector<char> ended(static_cast<std::size_t>(world_.size()), 0);
  ended[static_cast<std::size_t>(world_.rank())] = 1;
  std::vector<Mailbox::Sent> sent;
  for (int rank = 0; rank < world_.size(); ++rank)
    if (rank != world_.rank()) sent.push_back(mailbox_->send(rank, kEnded, nullptr, 0));
  const Timer since;
  PollingWait wait;
  // No call of the watchdog is open: this wait is as long as the others compute, and has its own limit.
  while (!sent.empty() || std::ranges::count(ended, 0) > 0) {
    std::erase_if(sent, [&](Mailbox::Sent message) { return mailbox_->sent(message); });
    if (const auto message = mailbox_->arrived()) {
      mailbox_->receive(nullptr, 0);
      ended[static_cast<std::size_t>(message->from)] = 1;
      wait.reset();
      continue;
    }
    if (stop_signal() != 0) return false;
    if (since.seconds() > most_seconds)
      throw Error(ErrorKind::communication,
                  fmt::format("waited {:.3g} s for the end of the run, and it goes on: {}", most_seconds,
                              missing(ended)),
                  target(), "Give join() more time, or look at what these tasks do.");
    wait.pause();
  }
  return true;
}

std::string Server::missing(const std::vector<char>& ended) const {
  std::string text;
  for (std::size_t rank = 0; rank < ended.size(); ++rank)
    if (ended[rank] == 0)
      text += fmt::format("{}{} {} (rank {})", text.empty() ? "" : ", ", roles_.tasks[rank].type,
                          roles_.tasks[rank].index, rank);
  return text.empty() ? "a message is under way" : text;
}

}  // namespace lockstep
