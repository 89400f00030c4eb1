// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/cluster_tasks.h"

#include <cmath>

#include "core/error.h"
#include "core/scalar.h"

namespace lockstep {

std::vector<PlacementRule> placement_rules(const Params& section) {
  const Node& places = section.node("places");
  std::vector<PlacementRule> rules;
  if (is_null(places)) return rules;
  if (places.kind != Node::Kind::map)
    throw section.error("places", "is no map", "Write places: {\"logits/*\": 0}.");
  for (const auto& [pattern, task] : places.entries) {
    const std::optional<std::int64_t> index = parse_integer(task.text);
    if (!index || *index < 0 || *index > 100000)
      throw Error(ErrorKind::config, fmt::format("cluster.places: '{}' has no index of a server", pattern),
                  task.where, "Give 0 for the first server, 1 for the second, and so on.");
    try {
      rules.push_back({NamePattern(pattern), static_cast<int>(*index), task.where});
    } catch (const Error& error) {
      throw Error(ErrorKind::config, "cluster.places: " + error.what_happened(), task.where, error.advice());
    }
  }
  return rules;
}

bool tasks_are_in_tf_config(const Params& section) {
  const Node& tasks = section.node("tasks");
  return tasks.kind == Node::Kind::scalar && tasks.text == "TF_CONFIG";
}

ClusterDescription tasks_of_section(const Params& section) {
  const Node& tasks = section.node("tasks");
  if (is_null(tasks) || tasks_are_in_tf_config(section)) return {};
  if (tasks.kind != Node::Kind::map)
    throw section.error("tasks", "is neither a map of jobs nor TF_CONFIG",
                        "Write tasks: {chief: [n01], worker: [n02], ps: [n03]}.");
  return {.cluster = cluster_spec(tasks), .where = tasks.where};
}

void refuse_without_servers(const Params& section, const ClusterOptions& options) {
  const auto refuse_without = [&](bool set, const char* key) {
    if (set && !options.used())
      throw section.error(key, "has no effect without servers", "Set cluster.ps to 1 or more.");
  };
  refuse_without(options.staleness > 0, "staleness");
  refuse_without(options.meet_every_steps.has_value(), "meet_every_steps");
  refuse_without(options.parts.has_value(), "parts");
  refuse_without(options.aggregate.has_value(), "aggregate");
  refuse_without(options.worker_delay_steps > 0, "worker_delay_steps");
  refuse_without(!is_null(section.node("places")), "places");
}

void take_tasks(ClusterOptions& options, const ClusterDescription& tasks) {
  tasks.check();
  const int servers = tasks.is_evaluator() ? 0 : tasks.cluster.num_tasks("ps");
  if (!tasks.cluster.empty() && !tasks.is_evaluator()) {
    if (options.servers > 0 && options.servers != servers)
      throw Error(
          ErrorKind::config,
          fmt::format("cluster.ps is {}, and the cluster has {}", options.servers, tasks.cluster.text()),
          tasks.where, "Leave cluster.ps out: the tasks say it.");
    for (int index = 0; index < servers; ++index)
      if (!tasks.cluster.has("ps", index))
        throw Error(ErrorKind::config,
                    fmt::format("the cluster has {}, but no ps {}", tasks.cluster.text(), index), tasks.where,
                    "Number the tasks of ps from 0 on.");
    options.servers = servers;
  }
}

ClusterSpec cluster_spec(const Node& jobs) {
  ClusterSpec cluster;
  const auto wrong = [](const Node& node, const std::string& job) {
    return Error(ErrorKind::config, fmt::format("job '{}' of the cluster is no list of addresses", job),
                 node.where, "Write ps: [n01, n02], or ps: {0: n01, 3: n02}.");
  };
  const auto add = [](ClusterSpec& to, const std::string& job, int index, const Node& address) {
    try {
      to.add(job, index, address.text);
    } catch (const Error& error) {
      throw Error(ErrorKind::config, fmt::format("{}: {}", error.where(), error.what_happened()),
                  address.where, error.advice());
    }
  };
  for (const auto& [job, tasks] : jobs.entries) {
    if (tasks.kind == Node::Kind::list) {
      for (std::size_t i = 0; i < tasks.items.size(); ++i) {
        if (tasks.items[i].kind != Node::Kind::scalar) throw wrong(tasks.items[i], job);
        add(cluster, job, static_cast<int>(i), tasks.items[i]);
      }
    } else if (tasks.kind == Node::Kind::map) {
      for (const auto& [key, address] : tasks.entries) {
        const std::optional<std::int64_t> index = parse_integer(key);
        if (!index || *index < 0 || *index > 1'000'000 || address.kind != Node::Kind::scalar)
          throw wrong(address, job);
        add(cluster, job, static_cast<int>(*index), address);
      }
    } else {
      throw wrong(tasks, job);
    }
  }
  return cluster;
}

std::int64_t first_step_of_worker(double delay_steps, int worker) {
  return static_cast<std::int64_t>(delay_steps * std::log(static_cast<double>(worker) + 1));
}

}  // namespace lockstep
