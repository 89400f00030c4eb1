// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/device_functions.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "core/error.h"

namespace lockstep {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<VariableToPlace> of_bytes(const std::vector<std::int64_t>& bytes) {
  std::vector<VariableToPlace> variables;
  for (const std::int64_t size : bytes)
    variables.push_back({.name = "v" + std::to_string(variables.size()), .bytes = size});
  return variables;
}

TEST(DeviceFunctions, RoundRobinTakesOneServerAfterTheOther) {
  EXPECT_THAT(place_variables(of_bytes({100, 1, 1, 1, 1}), 2, round_robin_strategy(2)),
              ElementsAre(0, 1, 0, 1, 0));
}

TEST(DeviceFunctions, GreedyTakesTheServerWithTheFewestBytesAndTheFirstOfSeveral) {
  EXPECT_THAT(place_variables(of_bytes({100, 60, 60, 10, 5}), 3, greedy_load_balancing_strategy(3)),
              ElementsAre(0, 1, 2, 1, 2));
}

TEST(DeviceFunctions, GreedyTakesAnyLoad) {
  const LoadFunction one = [](const VariableToPlace&) { return 1; };
  EXPECT_THAT(place_variables(of_bytes({100, 60, 60, 10, 5}), 2, greedy_load_balancing_strategy(2, one)),
              ElementsAre(0, 1, 0, 1, 0));
}

TEST(DeviceFunctions, GreedyKeepsServersWithinTheLargestVariable) {
  std::vector<std::int64_t> bytes;
  for (std::int64_t i = 0; i < 200; ++i) bytes.push_back(1 + i * 7919 % 1000);
  for (const int servers : {1, 2, 3, 5, 8}) {
    std::vector<std::int64_t> held(static_cast<std::size_t>(servers));
    const std::vector<int> places =
        place_variables(of_bytes(bytes), servers, greedy_load_balancing_strategy(servers));
    for (std::size_t i = 0; i < bytes.size(); ++i) held[static_cast<std::size_t>(places[i])] += bytes[i];
    const auto [least, most] = std::ranges::minmax(held);
    EXPECT_LE(most - least, 1000) << servers;
  }
}

TEST(DeviceFunctions, TheSetterTakesTheTasksOfAClusterAndRulesComeFirst) {
  const ClusterSpec cluster{{"worker", {"a"}}, {"ps", {"b", "c", "d"}}};
  std::vector<PlacementRule> rules{{NamePattern("v[13]"), 2, ""}, {NamePattern("v3"), 1, ""}};
  const DeviceFunction setter = replica_device_setter({.cluster = &cluster, .rules = rules});
  EXPECT_THAT(place_variables(of_bytes({1, 1, 1, 1, 1, 1}), 3, setter), ElementsAre(0, 2, 1, 2, 2, 0));
  EXPECT_FALSE(replica_device_setter({}));
  const ClusterSpec no_servers{{"worker", {"a"}}};
  EXPECT_FALSE(replica_device_setter({.ps_tasks = 2, .cluster = &no_servers}));
}

TEST(DeviceFunctions, ATaskThatIsNotThereIsAnError) {
  const auto message = [](auto&& body) -> std::string {
    try {
      body();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_THAT(message([] {
                replica_device_setter({.ps_tasks = 2, .rules = {{NamePattern("v*"), 2, "net.yaml:3:4"}}});
              }),
              testing::AllOf(HasSubstr("'v*' is placed on task 2 of ps"), HasSubstr("net.yaml:3:4")));
  const DeviceFunction wrong = [](const VariableToPlace&) { return -1; };
  EXPECT_THAT(message([&] { place_variables(of_bytes({1}), 2, wrong); }),
              HasSubstr("v0 is placed on task -1 of ps"));
  EXPECT_THAT(message([&] { replica_device_setter({.ps_tasks = 2, .strategy = wrong})({.name = "v0"}); }),
              HasSubstr("v0 is placed on task -1 of ps"));
}

}  // namespace
}  // namespace lockstep
