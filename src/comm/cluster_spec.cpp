// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/cluster_spec.h"

#include <fmt/format.h>

#include "core/error.h"

namespace lockstep {

ClusterSpec::ClusterSpec(std::initializer_list<std::pair<std::string, std::vector<std::string>>> jobs) {
  for (const auto& [job, addresses] : jobs)
    for (const std::string& address : addresses) add(job, address);
}

void ClusterSpec::add(const std::string& job, int index, std::string address) {
  const std::string where = fmt::format("task {} of job '{}'", index, job);
  if (job.empty() || address.empty() || index < 0)
    throw Error(ErrorKind::usage, "a task of a cluster has no job, no address or a negative index", where,
                "Give a name, an index from 0 on, and an address.");
  if (!jobs_[job].emplace(index, std::move(address)).second)
    throw Error(ErrorKind::usage, "a task of a cluster is given twice", where, "Give another index.");
}

void ClusterSpec::add(const std::string& job, std::string address) {
  const Tasks& there = tasks(job);
  add(job, there.empty() ? 0 : there.rbegin()->first + 1, std::move(address));
}

std::vector<std::string> ClusterSpec::jobs() const {
  std::vector<std::string> names;
  for (const auto& [name, tasks] : jobs_) names.push_back(name);
  return names;
}

bool ClusterSpec::has(std::string_view job, int index) const { return tasks(job).contains(index); }

const ClusterSpec::Tasks& ClusterSpec::tasks(std::string_view job) const {
  static const Tasks kNone;
  const auto found = jobs_.find(job);
  return found == jobs_.end() ? kNone : found->second;
}

std::vector<int> ClusterSpec::task_indices(std::string_view job) const {
  std::vector<int> indices;
  for (const auto& [index, address] : tasks(job)) indices.push_back(index);
  return indices;
}

std::vector<std::optional<std::string>> ClusterSpec::job_tasks(std::string_view job) const {
  std::vector<std::optional<std::string>> addresses;
  for (const auto& [index, address] : tasks(job)) {
    addresses.resize(static_cast<std::size_t>(index));
    addresses.emplace_back(address);
  }
  return addresses;
}

const std::string& ClusterSpec::task_address(std::string_view job, int index) const {
  const Tasks& there = tasks(job);
  const auto found = there.find(index);
  if (found == there.end())
    throw Error(ErrorKind::usage, fmt::format("the cluster has no task {} of job '{}'", index, job), "",
                fmt::format("It has {}.", text()));
  return found->second;
}

int ClusterSpec::num_tasks() const {
  int count = 0;
  for (const auto& [name, tasks] : jobs_) count += static_cast<int>(tasks.size());
  return count;
}

std::string ClusterSpec::text() const {
  std::string text;
  for (const auto& [name, tasks] : jobs_)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", tasks.size(), name);
  return text.empty() ? "no tasks" : text;
}

}  // namespace lockstep
