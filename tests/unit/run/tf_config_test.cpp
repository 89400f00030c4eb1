// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/sections/tf_config.h"

#include <gmock/gmock.h>

#include "config/yaml_node.h"
#include "support/error_support.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string mistake(const std::string& text) {
  return testing::message_of([&] { parse_tf_config(text); });
}

Params section_of(const std::string& yaml) {
  return Params(parse_yaml(yaml, "net.yaml"), cluster_table(), "section cluster");
}

/// With TF_CONFIG.
ClusterOptions resolved(const std::string& yaml, const char* text) {
  const Params section = section_of(yaml);
  ClusterOptions options = cluster_options(section);
  resolve_tf_config(options, section, [&](const char*) { return text; });
  return options;
}

TEST(TfConfig, HasTheClusterAndTheTask) {
  const ClusterDescription found = parse_tf_config(
      R"({"cluster": {"chief": ["a:1"], "worker": ["b:1", "c:1"], "ps": {"0": "d:1"}},
          "task": {"type": "worker", "index": 1}, "environment": "cloud", "model_dir": "/x"})");
  EXPECT_EQ(found.cluster, ClusterSpec({{"chief", {"a:1"}}, {"worker", {"b:1", "c:1"}}, {"ps", {"d:1"}}}));
  EXPECT_EQ(found.task, (ClusterTask{"worker", 1}));
  EXPECT_EQ(found.where, "TF_CONFIG");
  EXPECT_FALSE(parse_tf_config("{}").given());
  EXPECT_FALSE(parse_tf_config(R"({"cluster": {"chief": ["a:1"]}})").task);
  EXPECT_TRUE(parse_tf_config(R"({"cluster": {"chief": ["a"]}, "task": {"type": "evaluator", "index": 0}})")
                  .is_evaluator());
}

TEST(TfConfig, MistakesAreNamed) {
  EXPECT_THAT(mistake("{"), AllOf(HasSubstr("TF_CONFIG"), HasSubstr("no JSON")));
  EXPECT_THAT(mistake("[1]"), HasSubstr("no JSON object"));
  EXPECT_THAT(mistake(R"({"clusters": {}})"), HasSubstr("Did you mean 'cluster'?"));
  EXPECT_THAT(mistake(R"({"cluster": ["a"]})"), HasSubstr("cluster is no object"));
  EXPECT_THAT(mistake(R"({"cluster": {"chief": "a"}})"), HasSubstr("job 'chief' is no list of addresses"));
  EXPECT_THAT(mistake(R"({"cluster": {"chief": [1]}})"), HasSubstr("chief 0 has no address"));
  EXPECT_THAT(mistake(R"({"cluster": {"chief": ["a"], "ps": {"one": "b"}}})"),
              HasSubstr("'one', which is no index"));
  EXPECT_THAT(mistake(R"({"cluster": {"worker": ["a"]}})"), HasSubstr("no chief"));
  EXPECT_THAT(mistake(R"({"cluster": {"chief": ["a"], "master": ["b"]}})"),
              HasSubstr("a chief and a master"));
  EXPECT_THAT(mistake(R"({"cluster": {"chief": ["a"]}, "task": {"type": "chief"}})"),
              HasSubstr("has no index"));
  EXPECT_THAT(mistake(R"({"cluster": {"chief": ["a"]}, "task": {"index": 0}})"), HasSubstr("has no type"));
  EXPECT_THAT(mistake(R"({"cluster": {"chief": ["a"]}, "task": {"type": "worker", "index": 0}})"),
              HasSubstr("the task is worker 0, and the cluster has 1 chief"));
  EXPECT_THAT(mistake(R"({"task": {"type": "worker", "index": 1.5}})"), HasSubstr("no whole number"));
  EXPECT_THAT(mistake(R"({"task": {"typ": "worker"}})"), HasSubstr("Did you mean 'type'?"));
}

TEST(TfConfig, SaysHowManyServersThereAre) {
  const char* const text = R"({"cluster": {"chief": ["a"], "worker": ["b"], "ps": ["c", "d"]}})";
  EXPECT_EQ(resolved("{tasks: TF_CONFIG, staleness: 1}", text).servers, 2);
  EXPECT_EQ(resolved("{tasks: TF_CONFIG, ps: 2}", text).servers, 2);
  EXPECT_EQ(resolved("{ps: 1}", text).servers, 1);  // the variable is not asked for
  const auto wrong = [](const std::string& yaml, const char* of) {
    return testing::message_of([&] { resolved(yaml, of); });
  };
  EXPECT_THAT(wrong("{tasks: TF_CONFIG, ps: 1}", text), HasSubstr("cluster.ps is 1, and the cluster has"));
  EXPECT_THAT(wrong("{tasks: TF_CONFIG}", nullptr), HasSubstr("the environment variable is not set"));
  EXPECT_THAT(wrong("{tasks: TF_CONFIG, staleness: 1}", R"({"cluster": {"chief": ["a"]}})"),
              HasSubstr("has no effect without servers"));
}

TEST(ClusterSection, TasksAndPlacesAreMaps) {
  const Params section = section_of("{tasks: {worker: [a, b], ps: {0: c}}, places: {'logits/*': 0}}");
  EXPECT_EQ(cluster_options(section).servers, 1);
  EXPECT_EQ(tasks_of_section(section).cluster, ClusterSpec({{"worker", {"a", "b"}}, {"ps", {"c"}}}));
  const std::vector<PlacementRule> rules = placement_rules(section);
  ASSERT_EQ(rules.size(), 1U);
  EXPECT_TRUE(rules[0].variables.matches("logits/kernel"));
  EXPECT_FALSE(tasks_of_section(section_of("{ps: 1}")).given());
  const auto wrong = [](const std::string& yaml) {
    return testing::message_of([&] { cluster_options(section_of(yaml)); });
  };
  EXPECT_THAT(wrong("{tasks: [a]}"), HasSubstr("neither a map of jobs nor TF_CONFIG"));
  EXPECT_THAT(wrong("{tasks: {ps: a}}"), AllOf(HasSubstr("net.yaml:1:14"), HasSubstr("job 'ps'")));
  EXPECT_THAT(wrong("{tasks: {worker: [a], ps: {1: b}}}"), HasSubstr("but no ps 0"));
  EXPECT_THAT(wrong("{tasks: {chief: [a, b]}}"), HasSubstr("more than one chief"));
  EXPECT_THAT(wrong("{ps: 1, places: {'a*': x}}"), HasSubstr("'a*' has no index of a server"));
  EXPECT_THAT(wrong("{ps: 1, places: {'re:(': 0}}"), HasSubstr("cluster.places"));
  EXPECT_THAT(wrong("{places: {'a*': 0}}"), HasSubstr("has no effect without servers"));
  EXPECT_THAT(wrong("{worker_delay_steps: 10}"), HasSubstr("has no effect without servers"));
}

}  // namespace
}  // namespace lockstep
