// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A task of the cluster as the others see it: the address book of all tasks, and the wait of a task that has
// nothing more to do for those that have.
//
//   Server server(ranks);
//   if (server.roles().task_type() == "ps") { server.join(3600); return 0; }
//
// No port is opened: tasks talk through MPI.
#pragma once

#include <memory>
#include <string>

#include "comm/cluster_roles.h"
#include "comm/environment.h"
#include "comm/mailbox.h"

namespace lockstep {

class Server {
 public:
  /// All ranks. Without a description the last `servers` ranks are tasks of ps, and the others workers.
  /// Throws SharedError. `ranks` outlives it.
  explicit Server(CommEnvironment& ranks, const ClusterDescription& description = {}, int servers = 0);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Who is what.
  const ClusterRoles& roles() const { return roles_; }
  /// The host of each task.
  const ClusterSpec& cluster() const { return roles_.cluster; }
  /// Where this task runs: "n01, rank 3".
  std::string target() const;

  /// Says that this task has come to its end, and returns when all have: true. False: a signal came first
  /// (core/run_signals.h). After `most_seconds` it throws Error(communication), which names the tasks that
  /// are missing. Each rank, once.
  bool join(double most_seconds);

 private:
  std::string missing(const std::vector<char>& ended) const;

  Communicator& world_;
  ClusterRoles roles_;
  std::unique_ptr<Mailbox> mailbox_;  ///< null on one rank
};

}  // namespace lockstep
