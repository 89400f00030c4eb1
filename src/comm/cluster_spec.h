// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The jobs of a cluster, their tasks, and the address of each task: "worker" has tasks 0, 1, ..., and "ps",
// the parameter servers, may have some. A description only; cluster_roles.h says which rank is which task.
#pragma once

#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep {

class ClusterSpec {
 public:
  /// The addresses of a job by task index. Indices may have gaps.
  using Tasks = std::map<int, std::string>;

  ClusterSpec() = default;
  /// {{"worker", {"n01:2222", "n02:2222"}}, {"ps", {"n03:2222"}}}: tasks from 0 on.
  ClusterSpec(std::initializer_list<std::pair<std::string, std::vector<std::string>>> jobs);

  /// Throws Error(usage) for a task that is there, a negative index, or an empty name or address.
  void add(const std::string& job, int index, std::string address);
  /// Adds a task with the next index after the last one.
  void add(const std::string& job, std::string address);

  bool empty() const { return jobs_.empty(); }
  /// The names of the jobs in alphabetical order.
  std::vector<std::string> jobs() const;
  bool has(std::string_view job) const { return jobs_.find(job) != jobs_.end(); }
  bool has(std::string_view job, int index) const;
  /// 0 for a job that is not there; so are the functions below but task_address().
  int num_tasks(std::string_view job) const { return static_cast<int>(tasks(job).size()); }
  std::vector<int> task_indices(std::string_view job) const;
  const Tasks& tasks(std::string_view job) const;
  /// The addresses in the order of indices, nothing in gaps.
  std::vector<std::optional<std::string>> job_tasks(std::string_view job) const;
  /// Throws Error(usage) if there is no such task.
  const std::string& task_address(std::string_view job, int index) const;
  int num_tasks() const;

  bool operator==(const ClusterSpec&) const = default;
  /// A text for messages: "1 chief, 2 ps, 3 worker".
  std::string text() const;

 private:
  std::map<std::string, Tasks, std::less<>> jobs_;
};

}  // namespace lockstep
