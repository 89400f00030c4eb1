// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "comm/cluster_roles.h"
#include "core/error.h"

namespace lockstep {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Told = std::vector<std::optional<ClusterTask>>;
const std::vector<std::string> kOneHost(4, "n01");

std::string error_of(auto&& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

/// "chief 0, worker 1": the tasks by rank.
std::string assigned(const ClusterSpec& cluster, const std::vector<std::string>& hosts, Told told = {}) {
  told.resize(hosts.size());
  std::string text;
  for (const ClusterTask& task : assign_tasks({.cluster = cluster}, hosts, told))
    text += (text.empty() ? "" : ", ") + task.type + " " + std::to_string(task.index);
  return text;
}

TEST(ClusterSpec, NamesJobsTasksAndAddresses) {
  ClusterSpec cluster{{"worker", {"n02:1", "n03:1"}}, {"chief", {"n01:1"}}};
  cluster.add("ps", 1, "n04:1");
  EXPECT_THAT(cluster.jobs(), ElementsAre("chief", "ps", "worker"));
  EXPECT_EQ(cluster.num_tasks("worker"), 2);
  EXPECT_EQ(cluster.num_tasks("evaluator"), 0);
  EXPECT_EQ(cluster.num_tasks(), 4);
  EXPECT_EQ(cluster.task_address("worker", 1), "n03:1");
  EXPECT_THAT(cluster.task_indices("ps"), ElementsAre(1));
  EXPECT_THAT(cluster.job_tasks("ps"), ElementsAre(std::nullopt, std::optional<std::string>("n04:1")));
  EXPECT_THAT(error_of([&] { cluster.task_address("ps", 0); }), HasSubstr("no task 0 of job 'ps'"));
  EXPECT_THAT(error_of([&] { cluster.add("ps", 1, "n05:1"); }), HasSubstr("given twice"));
  EXPECT_THAT(error_of([&] { cluster.add("ps", -1, "n05:1"); }), HasSubstr("negative"));
  EXPECT_TRUE(ClusterSpec().empty());
}

TEST(ClusterRoles, TasksOfAHostTakeItsRanksInOrderWithServersLast) {
  const ClusterSpec cluster{{"ps", {"n01:4"}}, {"worker", {"n01:2", "n01:3"}}, {"chief", {"n01:1"}}};
  EXPECT_EQ(assigned(cluster, kOneHost), "chief 0, worker 0, worker 1, ps 0");
}

TEST(ClusterRoles, AddressesAreHostsShortOrLongOrRanks) {
  const ClusterSpec cluster{{"ps", {"n01"}}, {"worker", {"n02.cluster:3", "n03"}}, {"chief", {"localhost"}}};
  EXPECT_EQ(assigned(cluster, {"n01", "n01", "n02", "n03.cluster"}), "chief 0, ps 0, worker 0, worker 1");
  const ClusterSpec ranks{{"ps", {"rank:1"}}, {"worker", {"n01", "rank:2"}}, {"chief", {"n01"}}};
  EXPECT_EQ(assigned(ranks, kOneHost), "chief 0, ps 0, worker 1, worker 0");
}

TEST(ClusterRoles, RanksThatAreToldAreWhatTheyAreTold) {
  const ClusterSpec cluster{{"ps", {"a"}}, {"worker", {"b", "c"}}, {"chief", {"d"}}};
  const Told told{ClusterTask{"chief", 0}, ClusterTask{"ps", 0}, ClusterTask{"worker", 1},
                  ClusterTask{"worker", 0}};
  EXPECT_EQ(assigned(cluster, kOneHost, told), "chief 0, ps 0, worker 1, worker 0");
}

TEST(ClusterRoles, ContradictionsAreErrors) {
  const auto wrong = [](const ClusterSpec& cluster, Told told = {}) {
    return error_of([&] { assigned(cluster, kOneHost, std::move(told)); });
  };
  const ClusterSpec four{{"chief", {"n01"}}, {"worker", {"n01", "n01"}}, {"ps", {"n01"}}};
  EXPECT_EQ(wrong(four), "no error");
  EXPECT_THAT(wrong({{"chief", {"n01"}}, {"worker", {"n01", "n01"}}}), HasSubstr("rank 3 on n01 is no task"));
  EXPECT_THAT(wrong({{"chief", {"n01"}}, {"worker", {"n01", "n07"}}, {"ps", {"n01"}}}),
              HasSubstr("no rank is left for worker 1 on host n07"));
  EXPECT_THAT(wrong({{"worker", {"n01", "n01", "rank:4"}}}), HasSubstr("worker 2 is at rank:4"));
  EXPECT_THAT(wrong({{"chief", {"rank:1"}}, {"worker", {"n01", "n01", "n01"}}}),
              HasSubstr("rank 0 is worker 0, and rank 0 writes the files"));
  EXPECT_THAT(wrong({{"ps", {"rank:0"}}, {"worker", {"n01", "n01", "n01"}}}), HasSubstr("rank 0 is ps 0"));
  const ClusterTask chief{"chief", 0}, worker{"worker", 0}, ps{"ps", 0}, evaluator{"evaluator", 0};
  EXPECT_THAT(wrong(four, {chief, worker, worker, ps}), HasSubstr("two ranks are worker 0"));
  EXPECT_THAT(wrong(four, {chief, worker, std::nullopt, ps}), HasSubstr("rank 2 has no task"));
  EXPECT_THAT(wrong({{"chief", {"a"}}, {"worker", {"b", "c", "d"}}, {"ps", {"e"}}},
                    {chief, worker, ClusterTask{"worker", 1}, ps}),
              HasSubstr("no rank is worker 2"));
  EXPECT_THAT(wrong(four, {chief, worker, ClusterTask{"worker", 1}, evaluator}),
              HasSubstr("no rank is ps 0"));
  EXPECT_THAT(wrong({{"chief", {"a"}}, {"worker", {"b"}}}, {chief, worker, evaluator, evaluator}),
              HasSubstr("some ranks are an evaluator"));
}

TEST(ClusterRoles, DescriptionsAreCheckedBeforeRanksMeet) {
  const auto wrong = [](ClusterDescription description) { return error_of([&] { description.check(); }); };
  const ClusterTask worker{"worker", 0};
  EXPECT_THAT(wrong({.cluster = {{"chief", {"a"}}, {"master", {"b"}}}}), HasSubstr("a chief and a master"));
  EXPECT_THAT(wrong({.cluster = {{"chief", {"a", "b"}}}}), HasSubstr("more than one chief"));
  EXPECT_THAT(wrong({.cluster = {{"worker", {"a"}}}, .needs_chief = true}), HasSubstr("no chief"));
  EXPECT_EQ(wrong({.cluster = {{"worker", {"a"}}}}), "no error");
  EXPECT_THAT(wrong({.cluster = {{"evaluator", {"a"}}}}), HasSubstr("an evaluator is no task"));
  EXPECT_THAT(wrong({.cluster = {{"chief", {"a"}}}, .task = worker}), HasSubstr("the task is worker 0"));
  EXPECT_THAT(wrong({.cluster = {{"master", {"a"}}}, .task = ClusterTask{"evaluator", 0}}),
              HasSubstr("has no evaluator"));
  EXPECT_THAT(wrong({.cluster = {{"chief", {"a"}}}, .task = ClusterTask{"evaluator", 1}}),
              HasSubstr("one evaluator"));
  EXPECT_THAT(wrong({.task = ClusterTask{"ps", 0}}), HasSubstr("there is no cluster"));
  EXPECT_THAT(wrong({.task = ClusterTask{"worker", 1}}), HasSubstr("the index is 0"));
  EXPECT_THAT(wrong({.cluster = {{"chief", {"a"}}}, .task = ClusterTask{"chief", -1}}),
              HasSubstr("negative"));
}

TEST(ClusterRoles, SayWhoIsWhat) {
  ClusterRoles roles{.cluster = {{"chief", {"n01"}}, {"worker", {"n02", "n03"}}, {"ps", {"n01"}}},
                     .tasks = {{"chief", 0}, {"ps", 0}, {"worker", 1}, {"worker", 0}}};
  EXPECT_TRUE(roles.is_chief());
  EXPECT_EQ(roles.num_worker_replicas(), 3);
  EXPECT_EQ(roles.num_ps_replicas(), 1);
  EXPECT_THAT(roles.ranks_of("worker"), ElementsAre(3, 2));
  EXPECT_EQ(roles.rank_of("ps", 0), 1);
  EXPECT_THAT(error_of([&] { roles.rank_of("ps", 1); }), HasSubstr("no rank is task 1 of job 'ps'"));
  std::vector<int> ids;
  for (roles.rank = 0; roles.rank < 4; ++roles.rank) ids.push_back(roles.global_id());
  EXPECT_THAT(ids, ElementsAre(0, 3, 2, 1));
  roles.rank = 2;
  EXPECT_EQ(roles.task_type(), "worker");
  EXPECT_EQ(roles.task_index(), 1);
  EXPECT_FALSE(roles.is_chief());
  EXPECT_EQ(roles.text(), "chief is rank 0, ps is rank 1, worker is ranks 3 2");
}

}  // namespace
}  // namespace lockstep
