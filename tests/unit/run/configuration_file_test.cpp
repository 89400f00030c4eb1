// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/sections/configuration_file.h"

#include <gmock/gmock.h>

#include <cstdlib>

#include "config/error_text.h"
#include "config/yaml_node.h"
#include "run/sections/config.h"
#include "support/error_support.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::message_of;
using ::testing::Not;
using ::testing::StartsWith;
using testing::TemporaryFolder;

class ConfigurationFile : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) { return folder_.write(name, text); }
  std::string read(const std::string& path) { return to_yaml(read_configuration(path)); }
  std::string error_of(const std::string& path) {
    return message_of([&] { read_configuration(path); });
  }

  TemporaryFolder folder_;
};

constexpr const char* kBase =
    "data: {format: csv, path: d.csv, shape: [4]}\n"
    "model: {layers: [{dense: {units: 2}}]}\n"
    "optimizer: {adam: {learning_rate: 0.1, beta1: 0.8}, shard: true}\n"
    "train:\n  batch_size: 8\n  epochs: 2\n";

std::string merged(const std::string& base, const std::string& over) {
  return to_yaml(merged_configuration(parse_yaml(base, "base"), parse_yaml(over, "over")));
}

TEST_F(ConfigurationFile, TheFileAndLaterIncludesWin) {
  write("parts/first.yaml", "seed: 1\ntrain: {epochs: 1, batch_size: 8}\nshards: 3\n");
  write("parts/second.yaml", "include: third.yaml\nseed: 2\n");
  write("parts/third.yaml", "threads: 5\nseed: 3\ndevice: cpu\n");
  const std::string path =
      write("main.yaml", "include: [parts/first.yaml, parts/second.yaml]\ntrain: {epochs: 7}\n");
  EXPECT_EQ(read(path),
            "seed: 2\ntrain:\n  epochs: 7\n  batch_size: 8\nshards: 3\nthreads: 5\ndevice: cpu\n");
}

TEST(ConfigurationMerge, ChoicesAreReplacedAsAWhole) {
  EXPECT_EQ(
      merged("optimizer: {adam: {beta1: 0.8}, shard: true}", "optimizer: {momentum: {learning_rate: 0.1}}"),
      "optimizer:\n  shard: true\n  momentum:\n    learning_rate: 0.1\n");
  EXPECT_EQ(merged("optimizer: {adam: {beta1: 0.8}, shard: true}", "optimizer: {adam: {learning_rate: 0.1}}"),
            "optimizer:\n  adam:\n    beta1: 0.8\n    learning_rate: 0.1\n  shard: true\n");
  EXPECT_EQ(merged("optimizer: {adam: {beta1: 0.8}}", "optimizer: adam"),
            "optimizer:\n  adam:\n    beta1: 0.8\n");
  EXPECT_EQ(merged("optimizer: adam", "optimizer: {shard: true}"),
            "optimizer:\n  adam: null\n  shard: true\n");
  EXPECT_EQ(merged("optimizer: {adam: {learning_rate: {constant: {value: 1}}}}",
                   "optimizer: {adam: {learning_rate: {cosine_decay: {initial: 2}}}}"),
            "optimizer:\n  adam:\n    learning_rate:\n      cosine_decay:\n        initial: 2\n");
  EXPECT_EQ(merged("model: {loss: {huber: {delta: 2}}}", "model: {loss: hinge}"), "model:\n  loss: hinge\n");
  EXPECT_EQ(merged("average: {ema: {decay: 0.9}}", "average: {swa: {start_epoch: 3}}"),
            "average:\n  swa:\n    start_epoch: 3\n");
  EXPECT_EQ(merged("data: {format: csv, delimiter: x}", "data: {format: npy, features: x.npy}"),
            "data:\n  format: npy\n  features: x.npy\n");
  EXPECT_EQ(merged("data: {format: csv, shape: [4]}", "data: {path: a.csv}"),
            "data:\n  format: csv\n  shape: [4]\n  path: a.csv\n");
  EXPECT_EQ(merged("train: {epochs: 3, batch_size: 8}", "train: {steps: 5}"),
            "train:\n  batch_size: 8\n  steps: 5\n");
  EXPECT_EQ(merged("hooks: [logging]\neval: {every_epochs: 1}", "hooks: [profile]\neval: null"),
            "hooks: [profile]\neval: null\n");
}

TEST_F(ConfigurationFile, MistakesAreNamedWithTheFileInWhichTheyStand) {
  const std::string base = write("base.yaml", std::string(kBase) + "  stepz: 3\n");
  const std::string path = write("main.yaml", "include: base.yaml\neval: {every_epochs: -1}\n");
  try {
    load_config(path);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(
        error_text(error),
        AllOf(HasSubstr(base + ":7:3: unknown key 'stepz' in section train\n  7 |   stepz: 3\n    |   ^"),
              HasSubstr(path + ":2:22: "), HasSubstr("2 mistakes")));
  }
}

TEST_F(ConfigurationFile, ACycleIsNamedWithItsChain) {
  const std::string a = write("a.yaml", "include: sub/b.yaml\n"), c = write("c.yaml", "include: [a.yaml]\n");
  const std::string b = write("sub/b.yaml", "include: ../c.yaml\n");
  EXPECT_THAT(error_of(a), StartsWith(c + ":1:11: a file includes itself: " + a + " includes " + b +
                                      " includes " + c + " includes " + a));
  const std::string self = write("self.yaml", "include: ./self.yaml\n");
  EXPECT_THAT(error_of(self),
              StartsWith(self + ":1:10: a file includes itself: " + self + " includes " + self));
}

TEST_F(ConfigurationFile, TheSameFileMayBeIncludedTwice) {
  write("base.yaml", "seed: 4\n");
  write("left.yaml", "include: base.yaml\n");
  EXPECT_EQ(read(write("main.yaml", "include: [base.yaml, left.yaml]\n")), "seed: 4\n");
  // Each level includes the next one twice.
  for (int i = 0; i < 20; ++i)
    write("level" + std::to_string(i) + ".yaml",
          "include: [level" + std::to_string(i + 1) + ".yaml, level" + std::to_string(i + 1) + ".yaml]\n");
  write("level20.yaml", "seed: 1\n");
  EXPECT_THAT(error_of((folder_.path() / "level0.yaml").string()), HasSubstr("more than 1000 files"));
}

TEST_F(ConfigurationFile, WhatCannotBeIncluded) {
  EXPECT_THAT(error_of(write("a.yaml", "seed: 1\ninclude: missing.yaml\n")),
              AllOf(HasSubstr("a.yaml:2:10: "), HasSubstr("missing.yaml: the configuration cannot be read")));
  EXPECT_THAT(error_of(write("b.yaml", "include: {x: 1}\n")),
              HasSubstr("b.yaml:1:10: include must be the path"));
  write("list.yaml", "[1, 2]\n");
  EXPECT_THAT(error_of(write("c.yaml", "include: list.yaml\n")), HasSubstr("is no map of sections"));
  write("broken.yaml", "a: [\n");
  EXPECT_THAT(error_of(write("d.yaml", "include: broken.yaml\n")),
              HasSubstr("broken.yaml:2:1: not valid YAML"));
  EXPECT_THAT(message_of([] { config_from_text(std::string(kBase) + "include: a.yaml\n", "a.yaml"); }),
              HasSubstr("a.yaml:7:10: include is for configuration files"));
  const std::string good = write("good.yaml", kBase);
  const std::vector<std::string> overrides{"include=a.yaml"};
  EXPECT_THAT(message_of([&] { load_config(good, overrides); }),
              HasSubstr("--set include=a.yaml: include is for configuration files"));
}

TEST_F(ConfigurationFile, TheResolvedConfigurationIsWhole) {
  write("base.yaml", kBase);
  const Config config = load_config(write("main.yaml", "include: base.yaml\nseed: 9\n"));
  const std::string text = resolved_config_text(config);
  EXPECT_THAT(text, AllOf(HasSubstr("seed: 9\n"), HasSubstr("batch_size: 8\n"), Not(HasSubstr("include"))));
  EXPECT_EQ(resolved_config_text(config_from_text(text, "again.yaml")), text);
}

TEST_F(ConfigurationFile, VariablesOfTheEnvironment) {
  ::setenv("LOCKSTEP_TEST_BATCH", "32", 1);
  ::unsetenv("LOCKSTEP_TEST_NONE");
  const auto value = [](const std::string& text) {
    Node root = parse_yaml("a: " + text, "a.yaml");
    replace_variables(root);
    return root.find("a")->text;
  };
  EXPECT_EQ(value("${LOCKSTEP_TEST_BATCH}"), "32");
  EXPECT_EQ(value("${LOCKSTEP_TEST_NONE:-64}"), "64");
  EXPECT_EQ(value("x/${LOCKSTEP_TEST_NONE:-}/${LOCKSTEP_TEST_BATCH}0"), "x//320");
  EXPECT_EQ(value("$${LOCKSTEP_TEST_BATCH} $ $a $(b)"), "${LOCKSTEP_TEST_BATCH} $ $a $(b)");
  EXPECT_THAT(message_of([&] { value("[1, \"${LOCKSTEP_TEST_NONE}\"]"); }),
              AllOf(StartsWith("a.yaml:1:8: the environment variable LOCKSTEP_TEST_NONE is not set"),
                    HasSubstr("${LOCKSTEP_TEST_NONE:-default}")));
  EXPECT_THAT(message_of([&] { value("${open"); }), HasSubstr("without a }"));
  EXPECT_THAT(message_of([&] { value("{b: ${LOCKSTEP_TEST_BATCH}}"); }), HasSubstr("on a line of their own"));
  EXPECT_THAT(message_of([&] { value("${1x:-2}"); }), HasSubstr("'1x' is no name"));
  write("base.yaml", kBase);
  const Config config = load_config(
      write("main.yaml",
            "include: ${LOCKSTEP_TEST_NONE:-base}.yaml\ntrain:\n  batch_size: ${LOCKSTEP_TEST_BATCH}\n"));
  EXPECT_EQ(config.train.batch_size, 32);
}

TEST_F(ConfigurationFile, ResolvedTextKeepsWhatWasEscaped) {
  const std::string path =
      write("main.yaml", std::string(kBase) + "plugins: []\nbase_directory: \"/a$${b}\"\n");
  const Config config = load_config(path);
  EXPECT_EQ(config.base_directory, "/a${b}");
  EXPECT_EQ(config_from_text(resolved_config_text(config), "again").base_directory, "/a${b}");
  // The folder of copies has variables of each rank.
  Node root = parse_yaml("data: {stage_to: \"/scratch/${NO_SUCH_VARIABLE}\"}", "a.yaml");
  replace_variables(root);
  EXPECT_EQ(root.find("data")->find("stage_to")->text, "/scratch/${NO_SUCH_VARIABLE}");
}

}  // namespace
}  // namespace lockstep
