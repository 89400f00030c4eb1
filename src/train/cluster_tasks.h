// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What section `cluster` says in addition to ClusterOptions (server_layout.h): which rank is which task,
// where certain variables live, and which workers begin late.
#pragma once

#include <vector>

#include "comm/cluster_roles.h"
#include "config/params.h"
#include "train/device_functions.h"
#include "train/server_layout.h"

namespace lockstep {

/// Which server holds a variable, where `ClusterOptions::placement` does not say it.
struct VariablePlacement {
  std::vector<PlacementRule> rules = {};  ///< cluster.places; they come first
  DeviceFunction device_fn = {};          ///< of a program, instead of cluster.placement
};

/// cluster.places. Throws Error(config) with positions.
std::vector<PlacementRule> placement_rules(const Params& section);

/// cluster.tasks says TF_CONFIG: the tasks are in the environment (run/sections/tf_config.h).
bool tasks_are_in_tf_config(const Params& section);
/// cluster.tasks as a map; empty without one. Throws Error(config) with positions.
ClusterDescription tasks_of_section(const Params& section);
/// "chief": [addresses] or "chief": {index: address}, and so on. Throws Error(config) with positions.
ClusterSpec cluster_spec(const Node& jobs);
/// The number of servers is that of the job ps. Throws Error(config) if `ps` says another one, or if the
/// description contradicts itself.
void take_tasks(ClusterOptions& options, const ClusterDescription& tasks);
/// Throws Error(config) for an option that only servers read.
void refuse_without_servers(const Params& section, const ClusterOptions& options);

/// The step from which on worker number `worker` (from 0) computes: delay_steps * ln(worker + 1).
std::int64_t first_step_of_worker(double delay_steps, int worker);

}  // namespace lockstep
