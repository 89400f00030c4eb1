// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/cluster_roles.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

#include "comm/agree.h"
#include "comm/shared_error.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/name_list.h"

namespace lockstep {

namespace {

bool is_chief_job(std::string_view job) { return job == "chief" || job == "master"; }

std::string name_of(const ClusterTask& task) { return fmt::format("{} {}", task.type, task.index); }

Error wrong(const ClusterDescription& description, std::string what, std::string advice) {
  return Error(ErrorKind::config, std::move(what), description.where, std::move(advice));
}

std::string_view host_of(std::string_view address) { return address.substr(0, address.find(':')); }

/// "n01" is "n01.cluster", too.
bool same_host(std::string_view one, std::string_view other) {
  const auto is_longer = [](std::string_view longer, std::string_view shorter) {
    return longer.size() > shorter.size() && longer.starts_with(shorter) && longer[shorter.size()] == '.';
  };
  return one == other || is_longer(one, other) || is_longer(other, one);
}

/// The rank that an address asks for ("rank:3"), or nothing.
std::optional<int> named_rank(std::string_view address) {
  constexpr std::string_view kRank = "rank:";
  if (!address.starts_with(kRank)) return std::nullopt;
  int rank = -1;
  const char* const end = address.data() + address.size();
  const auto [last, failed] = std::from_chars(address.data() + kRank.size(), end, rank);
  return failed == std::errc() && last == end ? std::optional(rank) : std::optional(-1);
}

std::vector<ClusterTask> by_address(const ClusterDescription& description,
                                    std::span<const std::string> hosts) {
  const int ranks = static_cast<int>(hosts.size());
  std::vector<std::optional<ClusterTask>> tasks(hosts.size());
  const auto take = [&](int rank, const ClusterTask& task) { tasks[static_cast<std::size_t>(rank)] = task; };
  const auto is_free = [&](int rank) { return !tasks[static_cast<std::size_t>(rank)]; };
  const std::vector<ClusterTask> order = tasks_in_order(description.cluster);
  for (const ClusterTask& task : order) {  // those that name a rank come first
    const auto rank = named_rank(description.cluster.task_address(task.type, task.index));
    if (!rank) continue;
    if (*rank < 0 || *rank >= ranks || !is_free(*rank))
      throw wrong(description,
                  fmt::format("{} is at {}, which is no rank or that of another task", name_of(task),
                              description.cluster.task_address(task.type, task.index)),
                  fmt::format("Ranks are 0 to {}.", ranks - 1));
    take(*rank, task);
  }
  for (const ClusterTask& task : order) {
    const std::string& address = description.cluster.task_address(task.type, task.index);
    if (named_rank(address)) continue;
    const std::string_view host = host_of(address);
    const bool local = host == "localhost" || host == "127.0.0.1";
    int rank = 0;
    while (rank < ranks &&
           !(is_free(rank) && same_host(local ? hosts.front() : host, hosts[static_cast<std::size_t>(rank)])))
      ++rank;
    if (rank == ranks)
      throw wrong(
          description, fmt::format("no rank is left for {} on host {}", name_of(task), host),
          fmt::format("Ranks run on {}. Start one rank for each task, on the hosts of their addresses.",
                      name_list(hosts)));
    take(rank, task);
  }
  std::vector<ClusterTask> all;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::optional<ClusterTask>& task = tasks[static_cast<std::size_t>(rank)];
    if (!task)
      throw wrong(description,
                  fmt::format("rank {} on {} is no task of the cluster, which has {}", rank,
                              hosts[static_cast<std::size_t>(rank)], description.cluster.text()),
                  "Start as many ranks as there are tasks.");
    all.push_back(*task);
  }
  return all;
}

std::vector<ClusterTask> as_told(const ClusterDescription& description,
                                 std::span<const std::optional<ClusterTask>> told) {
  std::vector<ClusterTask> all;
  for (std::size_t rank = 0; rank < told.size(); ++rank) {
    if (!told[rank])
      throw wrong(description, fmt::format("rank {} has no task, and others have one", rank),
                  "Give each rank its task, or none of them.");
    if (std::ranges::find(all, *told[rank]) != all.end() && told[rank]->type != "evaluator")
      throw wrong(description, fmt::format("two ranks are {}", name_of(*told[rank])),
                  "Give each rank a task of its own.");
    all.push_back(*told[rank]);
  }
  if (all.front().type == "evaluator" || description.cluster.empty()) return all;
  for (const ClusterTask& task : tasks_in_order(description.cluster))
    if (std::ranges::find(all, task) == all.end())
      throw wrong(description, fmt::format("no rank is {}", name_of(task)),
                  "Start one rank for each task of the cluster.");
  return all;
}

/// What ranks tell each other.
struct Told {
  std::array<char, 64> type;
  int index;
  std::uint64_t cluster;
};

}  // namespace

void ClusterDescription::check() const {
  const bool chief = cluster.has("chief"), master = cluster.has("master");
  if (chief && master) throw wrong(*this, "the cluster has a chief and a master", "Leave one of them out.");
  if (cluster.num_tasks("chief") + cluster.num_tasks("master") > 1)
    throw wrong(*this, "the cluster has more than one chief", "Give one address.");
  if (!cluster.empty() && needs_chief && !chief && !master)
    throw wrong(*this, "the cluster has no chief", "Add \"chief\": [\"HOST:PORT\"]: it is rank 0.");
  if (cluster.has("evaluator"))
    throw wrong(*this, "an evaluator is no task of the cluster", "Start it as a job of its own.");
  if (!task) return;
  if (task->index < 0) throw wrong(*this, "the index of the task is negative", "Give 0 or more.");
  if (cluster.empty()) {
    if (task->type != "worker" && task->type != "evaluator")
      throw wrong(*this, fmt::format("the task is {}, and there is no cluster", name_of(*task)),
                  "Without a cluster a task is worker 0.");
    if (task->index != 0)
      throw wrong(*this, fmt::format("the task is {}, and there is no cluster", name_of(*task)),
                  "Without a cluster the index is 0.");
    return;
  }
  if (task->type == "evaluator") {
    if (master) throw wrong(*this, "a cluster with a master has no evaluator", "Name the master chief.");
    if (task->index != 0) throw wrong(*this, "there is one evaluator", "Its index is 0.");
    return;
  }
  if (!cluster.has(task->type, task->index))
    throw wrong(*this, fmt::format("the task is {}, and the cluster has {}", name_of(*task), cluster.text()),
                "Give a task of the cluster.");
}

std::vector<ClusterTask> tasks_in_order(const ClusterSpec& cluster) {
  std::vector<ClusterTask> tasks;
  const auto add = [&](auto choose) {
    for (const std::string& job : cluster.jobs())
      if (choose(job))
        for (const int index : cluster.task_indices(job)) tasks.push_back({job, index});
  };
  add([](const std::string& job) { return is_chief_job(job); });
  add([](const std::string& job) { return !is_chief_job(job) && job != "ps"; });
  add([](const std::string& job) { return job == "ps"; });
  return tasks;
}

std::vector<ClusterTask> assign_tasks(const ClusterDescription& description,
                                      std::span<const std::string> hosts,
                                      std::span<const std::optional<ClusterTask>> told) {
  const bool any_told = std::ranges::any_of(told, [](const auto& task) { return task.has_value(); });
  const std::vector<ClusterTask> tasks =
      any_told ? as_told(description, told) : by_address(description, hosts);
  const auto evaluators = std::ranges::count(tasks, "evaluator", &ClusterTask::type);
  if (evaluators > 0 && evaluators < std::ssize(tasks))
    throw wrong(description, "some ranks are an evaluator, and others train",
                "Start the evaluator as a job of its own: mpirun once more.");
  const bool has_chief = description.cluster.has("chief") || description.cluster.has("master");
  if (evaluators == 0 && (has_chief ? !is_chief_job(tasks.front().type) : tasks.front().type == "ps"))
    throw wrong(description,
                fmt::format("rank 0 is {}, and rank 0 writes the files of the run", name_of(tasks.front())),
                has_chief ? "Let the chief be rank 0: name its host first for mpirun."
                          : "Let a worker be rank 0: name its host first for mpirun.");
  return tasks;
}

ClusterRoles cluster_roles(Communicator& ranks, std::span<const std::string> hosts,
                           const ClusterDescription& description, int servers) {
  return shared([&] {
    const auto size = static_cast<std::size_t>(ranks.size());
    ClusterRoles roles{.rank = ranks.rank()};
    agree(
        ranks,
        [&] {
          description.check();
          if (description.task && description.task->type.size() >= Told{}.type.size())
            throw wrong(description, "the type of the task is too long", "Give a job of the cluster.");
        },
        "reading the tasks of the cluster");
    Told mine{.index = -1};
    std::string text;
    for (const ClusterTask& task : tasks_in_order(description.cluster))
      text += fmt::format("{} {}\n", name_of(task), description.cluster.task_address(task.type, task.index));
    mine.cluster = hash64(text);
    if (description.task) {
      std::strncpy(mine.type.data(), description.task->type.c_str(), mine.type.size() - 1);
      mine.index = description.task->index;
    }
    std::vector<Told> all(size);
    ranks.allgather(&mine, sizeof mine, all.data(), "tasks of the ranks");
    std::vector<std::optional<ClusterTask>> told;
    for (std::size_t rank = 0; rank < size; ++rank) {
      if (all[rank].cluster != all.front().cluster)
        throw wrong(description, fmt::format("ranks 0 and {} have two descriptions of the cluster", rank),
                    "Give all ranks the same jobs and addresses.");
      told.push_back(all[rank].index < 0
                         ? std::nullopt
                         : std::optional(ClusterTask{all[rank].type.data(), all[rank].index}));
    }
    if (description.cluster.empty()) {
      const bool evaluates = told.front() && told.front()->type == "evaluator";
      for (std::size_t rank = 0; rank < size; ++rank) {
        if ((told[rank] && told[rank]->type == "evaluator") != evaluates)
          throw wrong(description, "some ranks are an evaluator, and others train",
                      "Start the evaluator as a job of its own: mpirun once more.");
        const int workers = ranks.size() - servers, number = static_cast<int>(rank);
        // On one rank the worker is the server, too.
        const bool is_server = ranks.size() > 1 && number >= workers;
        roles.tasks.push_back(evaluates   ? ClusterTask{"evaluator", 0}
                              : is_server ? ClusterTask{"ps", number - workers}
                                          : ClusterTask{"worker", number});
      }
    } else {
      roles.tasks = assign_tasks(description, hosts, told);
    }
    for (std::size_t rank = 0; rank < size; ++rank)
      if (const ClusterTask& task = roles.tasks[rank]; task.type != "evaluator")
        roles.cluster.add(task.type, task.index, hosts[rank]);
    return roles;
  });
}

int ClusterRoles::num_worker_replicas() const {
  return cluster.num_tasks("worker") + cluster.num_tasks("chief") + cluster.num_tasks("master");
}

int ClusterRoles::global_id() const {
  const std::vector<ClusterTask> order = tasks_in_order(cluster);
  const auto found = std::ranges::find(order, tasks[static_cast<std::size_t>(rank)]);
  return found == order.end() ? 0 : static_cast<int>(found - order.begin());
}

std::vector<int> ClusterRoles::ranks_of(std::string_view job) const {
  std::vector<int> ranks;
  for (std::size_t i = 0; i < tasks.size(); ++i)
    if (tasks[i].type == job) ranks.push_back(static_cast<int>(i));
  std::ranges::sort(ranks, {}, [&](int of) { return tasks[static_cast<std::size_t>(of)].index; });
  return ranks;
}

int ClusterRoles::rank_of(std::string_view job, int index) const {
  for (std::size_t i = 0; i < tasks.size(); ++i)
    if (tasks[i].type == job && tasks[i].index == index) return static_cast<int>(i);
  throw Error(ErrorKind::usage, fmt::format("no rank is task {} of job '{}'", index, job), "",
              fmt::format("The cluster has {}.", cluster.text()));
}

std::string ClusterRoles::text() const {
  if (is_evaluator()) return "all ranks are the evaluator";
  std::vector<std::string> parts;
  for (const std::string& job : cluster.jobs()) {
    const std::vector<int> ranks = ranks_of(job);
    parts.push_back(ranks.size() == 1 ? fmt::format("{} is rank {}", job, ranks.front())
                                      : fmt::format("{} is ranks {}", job, fmt::join(ranks, " ")));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace lockstep
