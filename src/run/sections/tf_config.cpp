// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/sections/tf_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "io/json.h"

namespace lockstep {

namespace {

constexpr const char* kName = "TF_CONFIG";

Error wrong(std::string what, std::string advice) {
  return Error(ErrorKind::config, std::move(what), kName, std::move(advice));
}

constexpr const char* kForm = R"(Write {"cluster": {"chief": ["n01:2222"], "worker": ["n02:2222"]}}.)";

void check_keys(const Json& object, const char* owner, std::initializer_list<std::string_view> known) {
  for (const auto& [key, value] : object.items()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    const std::string near = nearest(key, std::vector<std::string_view>(known));
    throw wrong(fmt::format("{} has an unknown key '{}'", owner, key),
                near.empty() ? kForm : fmt::format("Did you mean '{}'?", near));
  }
}

std::optional<int> index_of(const std::string& text) {
  if (text.empty() || text.size() > 6 || text.find_first_not_of("0123456789") != std::string::npos)
    return std::nullopt;
  return std::stoi(text);
}

void add_job(ClusterSpec& cluster, const std::string& job, const Json& tasks) {
  const auto add = [&](int index, const Json& address) {
    if (!address.is_string() || address.get<std::string>().empty())
      throw wrong(fmt::format("{} {} has no address", job, index), kForm);
    cluster.add(job, index, address.get<std::string>());
  };
  if (tasks.is_array()) {
    for (std::size_t i = 0; i < tasks.size(); ++i) add(static_cast<int>(i), tasks[i]);
  } else if (tasks.is_object()) {
    for (const auto& [key, address] : tasks.items()) {
      const std::optional<int> index = index_of(key);
      if (!index) throw wrong(fmt::format("job '{}' has a task '{}', which is no index", job, key), kForm);
      add(*index, address);
    }
  } else {
    throw wrong(fmt::format("job '{}' is no list of addresses", job), kForm);
  }
}

ClusterTask task_of(const Json& task, bool in_cluster) {
  if (!task.is_object()) throw wrong("task is no object", R"(Write {"type": "worker", "index": 0}.)");
  check_keys(task, "task", {"type", "index"});
  const bool has_type = task.contains("type"), has_index = task.contains("index");
  if (in_cluster && (!has_type || !has_index))
    throw wrong(fmt::format("the task has no {}", has_type ? "index" : "type"),
                R"(Write {"type": "worker", "index": 0}.)");
  ClusterTask found;
  if (has_type) {
    if (!task["type"].is_string()) throw wrong("the type of the task is no text", kForm);
    found.type = task["type"].get<std::string>();
  }
  if (has_index) {
    const Json& index = task["index"];
    if (!index.is_integer() || index.get<double>() > 1e6 || index.get<double>() < -1e6)
      throw wrong("the index of the task is no whole number", "Give 0 or more.");
    found.index = index.get<int>();
  }
  return found;
}

}  // namespace

ClusterDescription parse_tf_config(const std::string& text) {
  Json root;
  try {
    root = Json::parse(text);
  } catch (const JsonError& error) {
    throw wrong(fmt::format("no JSON: {}", error.what()), kForm);
  }
  if (!root.is_object()) throw wrong("no JSON object", kForm);
  check_keys(
      root, "it",
      {"cluster", "task", "environment", "model_dir", "service", "session_master", "eval_session_master"});
  ClusterDescription found{.needs_chief = true, .where = kName};
  if (root.contains("cluster")) {
    if (!root["cluster"].is_object()) throw wrong("cluster is no object", kForm);
    for (const auto& [job, tasks] : root["cluster"].items()) add_job(found.cluster, job, tasks);
  }
  if (root.contains("task")) found.task = task_of(root["task"], !found.cluster.empty());
  found.check();
  return found;
}

ClusterDescription cluster_tasks(const Params& section, FunctionRef<const char*(const char* name)> get_env) {
  if (!tasks_are_in_tf_config(section)) return tasks_of_section(section);
  const char* const text = get_env(kName);
  if (text == nullptr || *text == '\0')
    throw wrong("cluster.tasks is TF_CONFIG, and the environment variable is not set",
                "Set it for all ranks (mpirun -x TF_CONFIG), or leave cluster.tasks out.");
  return parse_tf_config(text);
}

void resolve_tf_config(ClusterOptions& options, const Params& section,
                       FunctionRef<const char*(const char* name)> get_env) {
  if (!tasks_are_in_tf_config(section)) return;
  const ClusterDescription tasks = cluster_tasks(section, get_env);
  take_tasks(options, tasks);
  placement_rules(section);
  if (!tasks.is_evaluator()) refuse_without_servers(section, options);
}

}  // namespace lockstep
