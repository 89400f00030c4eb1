// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Device functions say which parameter server holds a variable: one after the other, by load, or as a program
// likes. They are asked for each variable once, in the order in which the variables lie in memory, which is
// the same on all ranks, and must say the same on all ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/cluster_spec.h"
#include "core/name_pattern.h"
#include "core/shape.h"

namespace lockstep {

/// A trainable variable. Others (frozen ones, statistics) are on all ranks.
struct VariableToPlace {
  std::string name;  ///< "conv1/kernel"
  Shape shape = {};
  std::int64_t bytes = 0;
};

/// The index of the task of ps.
using DeviceFunction = std::function<int(const VariableToPlace&)>;
/// What a variable costs its server.
using LoadFunction = std::function<std::int64_t(const VariableToPlace&)>;

/// 0, 1, ..., and again 0.
DeviceFunction round_robin_strategy(int ps_tasks);
std::int64_t byte_size_load(const VariableToPlace& variable);
/// The task with the smallest load so far, the first of several.
DeviceFunction greedy_load_balancing_strategy(int ps_tasks, LoadFunction load = byte_size_load);

/// Variables whose names match are on one task.
struct PlacementRule {
  NamePattern variables;
  int ps_task = 0;
  std::string where;  ///< for messages
};

struct ReplicaDeviceSetter {
  int ps_tasks = 0;
  /// The cluster whose job ps gives the number of tasks, instead of ps_tasks.
  const ClusterSpec* cluster = nullptr;
  /// The strategy; empty: round robin.
  DeviceFunction strategy = {};
  /// The first one that matches comes before the strategy.
  std::vector<PlacementRule> rules = {};
};

/// The function, which is empty if there are no tasks of ps: every rank then has all variables. Throws
/// Error(config) for a rule with a task that is not there; the function does so for what a strategy says.
DeviceFunction replica_device_setter(const ReplicaDeviceSetter& setter);

/// The task of each variable, in their order. Throws what the function throws, and Error(config) for a task
/// that is not there.
std::vector<int> place_variables(std::span<const VariableToPlace> variables, int ps_tasks,
                                 const DeviceFunction& function);

}  // namespace lockstep
