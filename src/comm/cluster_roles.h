// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Which rank is which task of a cluster. From MPI alone all ranks are workers, and the last ones parameter
// servers if there are any. A ClusterDescription, which section `cluster` or the environment variable
// TF_CONFIG gives, says it otherwise. Rank 0 writes the files of the run and is the chief in each case.
//
// An evaluator is no part of the cluster: it is a job of its own, all of whose ranks are the evaluator.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/cluster_spec.h"
#include "comm/communicator.h"

namespace lockstep {

struct ClusterTask {
  std::string type = "worker";  ///< the job
  int index = 0;
  bool operator==(const ClusterTask&) const = default;
};

/// What is said about a cluster before its ranks know of each other.
struct ClusterDescription {
  ClusterSpec cluster = {};               ///< empty: the tasks are the ranks of MPI
  std::optional<ClusterTask> task = {};   ///< of this process; none: found by the address
  bool needs_chief = false;               ///< as TF_CONFIG
  std::string where = "section cluster";  ///< for messages

  bool given() const { return !cluster.empty() || task; }
  bool is_evaluator() const { return task && task->type == "evaluator"; }
  /// Throws Error(config) if it contradicts itself.
  void check() const;
};

struct ClusterRoles {
  ClusterSpec cluster;             ///< each address is the host of a rank: "n01"; empty for an evaluator
  std::vector<ClusterTask> tasks;  ///< by rank
  int rank = 0;                    ///< this one

  const std::string& task_type() const { return tasks[static_cast<std::size_t>(rank)].type; }
  int task_index() const { return tasks[static_cast<std::size_t>(rank)].index; }
  bool is_evaluator() const { return task_type() == "evaluator"; }
  /// It writes the files of the run. Never an evaluator.
  bool is_chief() const { return rank == 0 && !is_evaluator(); }
  int num_ps_replicas() const { return cluster.num_tasks("ps"); }
  /// Workers, the chief among them.
  int num_worker_replicas() const;
  /// Its place among all tasks: the chief is 0, then other jobs in alphabetical order, ps the last. 0 for an
  /// evaluator.
  int global_id() const;
  /// The ranks of a job, ascending by task index.
  std::vector<int> ranks_of(std::string_view job) const;
  /// Throws Error(usage) if there is no such task.
  int rank_of(std::string_view job, int index) const;
  /// "chief 0 is rank 0, worker 0 and 1 are ranks 2 and 3, ..." in one line, for the log.
  std::string text() const;
};

/// The tasks in the order of global_id().
std::vector<ClusterTask> tasks_in_order(const ClusterSpec& cluster);

/// `told`: the task of each rank as it was told itself, or nothing for each. Otherwise a task belongs to the
/// rank that its address names: "rank:3", or the first free rank of a host ("n01", "n01:2222"; "localhost" is
/// the host of rank 0), in the order of tasks_in_order(). Throws Error(config). Pure: every rank computes the
/// same.
std::vector<ClusterTask> assign_tasks(const ClusterDescription& description,
                                      std::span<const std::string> hosts,
                                      std::span<const std::optional<ClusterTask>> told);

/// All ranks. `hosts`: of each rank. Without a description the last `servers` ranks are servers. Throws
/// SharedError.
ClusterRoles cluster_roles(Communicator& ranks, std::span<const std::string> hosts,
                           const ClusterDescription& description, int servers);

}  // namespace lockstep
