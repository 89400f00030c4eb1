// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/device_functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace lockstep {

namespace {

void check_task(int task, int ps_tasks, const std::string& what, const std::string& where) {
  if (task >= 0 && task < ps_tasks) return;
  throw Error(ErrorKind::config, fmt::format("{} is placed on task {} of ps", what, task), where,
              fmt::format("Tasks are 0 to {}.", ps_tasks - 1));
}

}  // namespace

DeviceFunction round_robin_strategy(int ps_tasks) {
  return [ps_tasks, next = 0](const VariableToPlace&) mutable {
    return std::exchange(next, (next + 1) % ps_tasks);
  };
}

std::int64_t byte_size_load(const VariableToPlace& variable) { return variable.bytes; }

DeviceFunction greedy_load_balancing_strategy(int ps_tasks, LoadFunction load) {
  return [loads = std::vector<std::int64_t>(static_cast<std::size_t>(ps_tasks)),
          load = std::move(load)](const VariableToPlace& variable) mutable {
    const auto least = std::ranges::min_element(loads);
    *least += load(variable);
    return static_cast<int>(least - loads.begin());
  };
}

DeviceFunction replica_device_setter(const ReplicaDeviceSetter& setter) {
  const int ps_tasks = setter.cluster != nullptr ? setter.cluster->num_tasks("ps") : setter.ps_tasks;
  if (ps_tasks == 0) return {};
  for (const PlacementRule& rule : setter.rules)
    check_task(rule.ps_task, ps_tasks, fmt::format("'{}'", rule.variables.text()), rule.where);
  DeviceFunction others = setter.strategy ? setter.strategy : round_robin_strategy(ps_tasks);
  return [ps_tasks, rules = setter.rules, others = std::move(others)](const VariableToPlace& variable) {
    for (const PlacementRule& rule : rules)
      if (rule.variables.matches(variable.name)) return rule.ps_task;
    const int task = others(variable);
    check_task(task, ps_tasks, variable.name, "a device function");
    return task;
  };
}

std::vector<int> place_variables(std::span<const VariableToPlace> variables, int ps_tasks,
                                 const DeviceFunction& function) {
  std::vector<int> places;
  for (const VariableToPlace& variable : variables) {
    const int task = function(variable);
    check_task(task, ps_tasks, variable.name, "a device function");
    places.push_back(task);
  }
  return places;
}

}  // namespace lockstep
