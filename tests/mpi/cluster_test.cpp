// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Roles of ranks, the wait for the end of the run, and device functions of a program, on any number of ranks.
#include <gmock/gmock.h>

#include <chrono>
#include <thread>

#include "api/experiment.h"
#include "comm/server.h"
#include "core/error.h"
#include "session/run_state.h"
#include "support/estimator_run.h"
#include "train/device_functions.h"

namespace lockstep {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string error_of(auto&& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

const std::string& host() { return test_environment().hosts().front(); }

TEST(Server, FromMpiAloneTheLastRanksAreServers) {
  const int ranks = test_world().size(), rank = test_world().rank();
  Server server(test_environment(), {}, ranks > 2 ? 1 : 0);
  const ClusterRoles& roles = server.roles();
  const bool is_server = ranks > 2 && rank == ranks - 1;
  EXPECT_EQ(roles.task_type(), is_server ? "ps" : "worker");
  EXPECT_EQ(roles.task_index(), is_server ? 0 : rank);
  EXPECT_EQ(roles.is_chief(), rank == 0);
  EXPECT_EQ(roles.num_ps_replicas(), ranks > 2 ? 1 : 0);
  EXPECT_EQ(roles.num_worker_replicas(), ranks > 2 ? ranks - 1 : ranks);
  EXPECT_EQ(server.cluster().task_address("worker", 0), host());
  EXPECT_THAT(server.target(), AllOf(HasSubstr(host()), HasSubstr("rank " + std::to_string(rank))));
}

TEST(Server, ADescriptionSaysWhoIsWhat) {
  const int ranks = test_world().size();
  if (ranks < 3) GTEST_SKIP() << "needs three ranks";
  ClusterSpec cluster{{"chief", {"localhost:1"}}, {"ps", {"rank:1"}}};
  for (int i = 2; i < ranks; ++i) cluster.add("worker", host() + ":" + std::to_string(i));
  Server server(test_environment(), {.cluster = cluster});
  EXPECT_EQ(server.roles().rank_of("ps", 0), 1);
  EXPECT_EQ(server.roles().rank_of("chief", 0), 0);
  EXPECT_EQ(server.roles().rank_of("worker", ranks - 3), ranks - 1);
}

TEST(Server, RanksAreToldTheirTasks) {
  const int ranks = test_world().size(), rank = test_world().rank();
  if (ranks < 3) GTEST_SKIP() << "needs three ranks";
  ClusterSpec cluster{{"chief", {"a"}}, {"ps", {"b"}}};
  for (int i = 2; i < ranks; ++i) cluster.add("worker", "c");
  const ClusterTask mine = rank == 0   ? ClusterTask{"chief", 0}
                           : rank == 1 ? ClusterTask{"ps", 0}
                                       : ClusterTask{"worker", ranks - 1 - rank};
  const ClusterRoles roles =
      cluster_roles(test_world(), test_environment().hosts(), {.cluster = cluster, .task = mine}, 0);
  EXPECT_EQ(roles.rank_of("worker", 0), ranks - 1);
  EXPECT_EQ(roles.task_type(), mine.type);
  EXPECT_EQ(roles.cluster.task_address("ps", 0), host());
  // Another cluster on one rank.
  ClusterSpec other = cluster;
  if (rank == 1) other.add("worker", "d");
  EXPECT_THAT(error_of([&] {
                cluster_roles(test_world(), test_environment().hosts(), {.cluster = other, .task = mine}, 0);
              }),
              HasSubstr("ranks 0 and 1 have two descriptions"));
  // A rank whose description is wrong by itself.
  const ClusterTask wrong = rank == 1 ? ClusterTask{"ps", 7} : mine;
  EXPECT_THAT(error_of([&] {
                cluster_roles(test_world(), test_environment().hosts(), {.cluster = cluster, .task = wrong},
                              0);
              }),
              HasSubstr("the task is ps 7"));
}

TEST(Server, AnEvaluatorIsNoPartOfTheCluster) {
  const ClusterRoles roles =
      cluster_roles(test_world(), test_environment().hosts(),
                    {.cluster = {{"chief", {"a"}}}, .task = ClusterTask{"evaluator", 0}}, 0);
  EXPECT_TRUE(roles.is_evaluator());
  EXPECT_FALSE(roles.is_chief());
  EXPECT_TRUE(roles.cluster.empty());
  EXPECT_EQ(roles.num_worker_replicas(), 0);
  EXPECT_EQ(roles.num_ps_replicas(), 0);
}

TEST(Server, JoinReturnsWhenAllHaveEnded) {
  Server server(test_environment());
  static std::atomic<bool> ended;
  ended = false;
  if (test_world().rank() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(300));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(server.join(60));
  const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
  if (test_world().rank() != 0) {
    EXPECT_GT(waited.count(), 0.2);
  }
}

TEST(Server, JoinHasALimitAndNamesWhoIsMissing) {
  if (test_world().size() == 1) GTEST_SKIP() << "needs several ranks";
  Server server(test_environment());
  const int last = test_world().size() - 1;
  if (test_world().rank() == last)
    std::this_thread::sleep_for(std::chrono::milliseconds(1200));
  else
    EXPECT_THAT(error_of([&] { server.join(0.3); }),
                AllOf(HasSubstr("waited 0.3 s"), HasSubstr("worker " + std::to_string(last) + " (rank")));
  test_world().barrier("the others have waited");
}

RunConfig with_servers(const std::string& run_dir, int servers) {
  RunConfig run = small_run(run_dir);
  run.cluster.ps = servers;
  return run;
}

std::string digest(const std::string& run_dir) {
  test_world().barrier("checkpoints are written");
  return find_checkpoint(test_world(), run_dir, "").header.digest;
}

TEST(DeviceFunction, OfAProgramSaysWhereVariablesLive) {
  const int ranks = test_world().size();
  if (ranks < 3) GTEST_SKIP() << "needs three ranks";
  Estimator plain(test_environment(), small_model, small_run(fresh_run_dir("without_servers")));
  plain.train(class_input(), {.max_steps = 6});
  RunConfig run = with_servers(fresh_run_dir("device_fn"), 2);
  std::vector<std::string> asked;
  run.device_fn = [&](const VariableToPlace& variable) {
    asked.push_back(variable.name);
    EXPECT_EQ(variable.bytes > 0, true);
    return variable.name == "logits/kernel" ? 1 : 0;
  };
  Estimator estimator(test_environment(), small_model, run);
  EXPECT_EQ(estimator.cluster().num_ps_replicas(), 2);
  EXPECT_EQ(estimator.cluster().num_worker_replicas(), ranks - 2);
  estimator.train(class_input(), {.steps = 6});
  EXPECT_THAT(asked, testing::ElementsAre("logits/bias", "logits/kernel", "dense1/bias", "dense1/kernel"));
  EXPECT_EQ(digest(run.model_dir), digest(plain.model_dir()));
}

TEST(DeviceFunction, MistakesEndTheCallOnAllRanks) {
  const int ranks = test_world().size();
  if (ranks < 2) GTEST_SKIP() << "needs several ranks";
  const auto message = [](DeviceFunction function) {
    RunConfig run = with_servers(fresh_run_dir("device_fn_mistakes"), 1);
    run.device_fn = std::move(function);
    Estimator estimator(test_environment(), small_model, run);
    return error_of([&] { estimator.train(class_input(), {.max_steps = 2}); });
  };
  EXPECT_THAT(message([](const VariableToPlace&) { return 1; }),
              HasSubstr("logits/bias is placed on task 1 of ps"));
  EXPECT_THAT(message([](const VariableToPlace&) -> int {
                if (test_world().rank() == 1) throw Error(ErrorKind::data, "no such disk");
                return 0;
              }),
              HasSubstr("no such disk"));
  if (ranks < 3) return;
  RunConfig run = with_servers(fresh_run_dir("device_fn_differs"), 2);
  run.device_fn = [](const VariableToPlace&) { return test_world().rank() == 2 ? 1 : 0; };
  Estimator estimator(test_environment(), small_model, run);
  EXPECT_THAT(error_of([&] { estimator.train(class_input(), {.max_steps = 2}); }),
              HasSubstr("device functions of ranks 0 and 2"));
}

TEST(Experiment, WorkersThatBeginLateChangeNoBits) {
  const int ranks = test_world().size();
  if (ranks < 3) GTEST_SKIP() << "needs three ranks";
  Estimator plain(test_environment(), small_model, small_run(fresh_run_dir("no_delay")));
  plain.train(class_input(), {.max_steps = 8});
  Estimator late(test_environment(), small_model, with_servers(fresh_run_dir("delay"), 1));
  late.train(class_input(), {.max_steps = 8, .worker_delay_steps = 6});  // worker 1 from step 4 on
  EXPECT_EQ(digest(late.model_dir()), digest(plain.model_dir()));
  Estimator unknown(test_environment(), small_model, small_run(fresh_run_dir("delay_without_servers")));
  Experiment experiment(
      unknown, {.train_input = class_input(), .train_steps = 8, .delay_workers_by_global_step = true});
  EXPECT_THAT(error_of([&] { experiment.train(); }), HasSubstr("has no effect without servers"));
}

}  // namespace
}  // namespace lockstep
