// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/sections/config.h"

#include <gmock/gmock.h>

#include "config/error_text.h"
#include "config/yaml_node.h"
#include "run/sections/config_tables.h"
#include "support/error_support.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using testing::message_of;
using ::testing::Not;
using ::testing::StartsWith;
using testing::TemporaryFolder;

constexpr const char* kSmallest =
    "data: {format: csv, path: d.csv, shape: [4]}\nmodel: {layers: [{dense: {units: "
    "2}}]}\noptimizer: adam\n"
    "train:\n  batch_size: 8\n  epochs: 2\n";

Config config_of(const std::string& more, std::vector<std::string> overrides = {}) {
  return config_from_text(kSmallest + more, "a.yaml", overrides);
}
std::string error_of(const std::string& more, std::vector<std::string> overrides = {}) {
  return message_of([&] { config_of(more, overrides); });
}

TEST(Config, ASectionThatDoesNotExistIsNamed) {
  EXPECT_THAT(message_of([] { config_of("").section("trian"); }, ErrorKind::usage),
              AllOf(HasSubstr("the configuration has no section trian"), HasSubstr("train")));
}

TEST(Config, Defaults) {
  const Config config = config_of("");
  EXPECT_EQ(config.general.seed, 0);
  EXPECT_FALSE(config.general.shards);
  EXPECT_FALSE(config.general.threads);
  EXPECT_EQ(config.train.batch_size, 8);
  EXPECT_EQ(config.train.epochs, 2);
  EXPECT_EQ(config.train.shuffle, Shuffle::samples);
  EXPECT_EQ(config.train.last_batch, LastBatch::smaller);
  EXPECT_EQ(config.train.on_nan, GuardAction::error);
  EXPECT_FALSE(config.eval.batch_size);
  EXPECT_EQ(config.eval.every_epochs, 1);
  EXPECT_EQ(config.checkpoint.saver.retention.keep, 5);
  EXPECT_EQ(config.summary.every_steps, 10);
  EXPECT_FALSE(config.comm.fast_reduction);
  EXPECT_EQ(config.comm.bucket_first_bytes, 1 << 20);
  EXPECT_EQ(config.comm.timeout_seconds, std::nullopt);
  EXPECT_EQ(config_of("comm: {timeout_seconds: 7}\n").comm.timeout_seconds, 7.0);
  EXPECT_EQ(config.precision.compute, DType::f32);
  EXPECT_EQ(config.data.format, "csv");
  EXPECT_EQ(config.model.section.where(), "a.yaml:2:8");
}

TEST(Config, MistakesAreNamedWithTheirPlace) {
  EXPECT_THAT(error_of("trian: {}\n"), StartsWith("a.yaml:7:1: unknown key 'trian' in the configuration\n  "
                                                  "Did you mean 'train'? Known keys: seed, "));
  EXPECT_THAT(error_of("comm: {reduction: tre}\n"),
              StartsWith("a.yaml:7:19: section comm, reduction: 'tre' is not one of"));
  EXPECT_THAT(error_of("checkpoint:\n  keep: -1\n"),
              StartsWith("a.yaml:8:9: section checkpoint, keep: must be [0, 1e9]"));
  EXPECT_THAT(error_of("eval: 3\n"), StartsWith("a.yaml:7:7: section eval must be a map"));
  EXPECT_THAT(error_of("precision: {compute: bfloat15}\n"), HasSubstr("Did you mean 'bfloat16'?"));
  EXPECT_THAT(error_of("", {"train.batch_sizes=4"}),
              StartsWith("--set train.batch_sizes=4: unknown key 'batch_sizes' in section train\n  Did you "
                         "mean 'batch_size'?"));
  EXPECT_THAT(message_of([] { config_from_text("", "a.yaml"); }),
              HasSubstr("a.yaml: the configuration is empty"));
  EXPECT_THAT(message_of([] { config_from_text("data: {}\nmodel: {}\noptimizer: {}\n", "a.yaml"); }),
              HasSubstr("a.yaml:1:1: section train needs 'batch_size'"));
}

TEST(Config, MisspeltBlocksGetASuggestion) {
  const auto error_of_layers = [](const std::string& layers, const std::string& blocks = "") {
    return message_of([&] {
      config_from_text(
          "data: {format: csv, path: d.csv, shape: [4]}\noptimizer: adam\n"
          "train: {batch_size: 8, epochs: 2}\nmodel:\n  layers: " +
              layers + "\n" + blocks,
          "a.yaml");
    });
  };
  const std::string blocks = "  blocks: {residual_unit: {layers: [relu]}, wide: {layers: [residul_unit]}}\n";
  EXPECT_THAT(
      error_of_layers("[residual_unt, dense: {units: 2}]", blocks),
      StartsWith("a.yaml:5:12: unknown layer 'residual_unt'\n  Did you mean 'residual_unit'? Known: "));
  EXPECT_THAT(
      error_of_layers("[wide, dense: {units: 2}]", blocks),
      AllOf(StartsWith("a.yaml:6:61: unknown layer 'residul_unit'"), HasSubstr("mean 'residual_unit'?")));
  EXPECT_THAT(error_of_layers("[resnet_20]"), HasSubstr("Did you mean 'resnet20'?"));
  EXPECT_THAT(error_of_layers("[repeet: {times: 2, layers: [relu]}]"), HasSubstr("Did you mean 'repeat'?"));
  EXPECT_THAT(error_of_layers("[Conv2D: {filters: 2, kernel: 3}]"), HasSubstr("Did you mean 'conv2d'?"));
}

// Seven mistakes in one file and one on the command line; a mistake has no consequences in the list.
TEST(Config, AllMistakesAtOnceInOrder) {
  const std::string text =
      "train: {batch_size: 0, epochs: ten}\n"
      "data: {format: csv, shape: [4]}\n"
      "model:\n"
      "  layers:\n"
      "    - Conv2D: {filters: 4, kernel: 3}\n"
      "    - dense: {units: 2, activation: relu}\n"
      "    - dropout: {rate: 2}\n"
      "optimizer: adamx\n"
      "eval: {metrics: [accuracy]}\n";
  const std::vector<std::string> overrides{"comm.reduction=quick"};
  try {
    config_from_text(text, "a.yaml", overrides);
    FAIL() << "no error";
  } catch (const ErrorGroup& group) {
    std::vector<std::string> places;
    for (const Error& error : group.errors()) places.push_back(error.where());
    EXPECT_THAT(places, ElementsAre("a.yaml:1:21", "a.yaml:1:32", "a.yaml:2:7", "a.yaml:5:7", "a.yaml:6:25",
                                    "a.yaml:7:23", "a.yaml:8:12", "--set comm.reduction=quick"));
    const std::string printed = error_text(group);
    EXPECT_THAT(
        printed,
        StartsWith(
            "error: a.yaml:1:21: section train, batch_size: must be [1, 2147483647] samples, but is 0\n"
            "  1 | train: {batch_size: 0, epochs: ten}\n"
            "    |                     ^\n"
            "  Samples per global step, over all ranks and all rounds of accumulate together.\n"
            "error: a.yaml:1:32: "));
    EXPECT_THAT(printed, EndsWith("\n8 mistakes"));
  }
}

TEST(Config, TheMarkStandsBelowThePlace) {
  config_of("# \xC3\xA4\xC3\xB6: a comment\n");
  const auto shown = [](const std::string& where) {
    return error_text(Error(ErrorKind::config, "x", where));
  };
  EXPECT_EQ(shown("a.yaml:7:5"), "error: a.yaml:7:5: x\n  7 | # \xC3\xA4\xC3\xB6: a comment\n    |    ^");
  EXPECT_EQ(shown("a.yaml:99:1"), "error: a.yaml:99:1: x");
  EXPECT_EQ(shown("b.yaml:1:1"), "error: b.yaml:1:1: x");
  config_of("# " + std::string(500, 'x') + "y\n");
  EXPECT_THAT(shown("a.yaml:7:503"), EndsWith("xxxy\n    | " + std::string(63, ' ') + "^"));
}

TEST(Config, MistakesOfOverridesNameTheOption) {
  const std::string layers = "model: {layers: [{dense: {units: 2}}], loss: mean}\n";
  for (const std::string assignment :
       {"train.epochs=null", "model.layers.dense1.unit=3", "model.layers.0={dense: {}}",
        "optimizer.adam.lr=3", "optimizer=adamx", "model.layers.dense1.name=a b",
        "hooks=[{profile: {first_step: 20}}]", "train=5", "gradients={clip_norm: 1, clip_value: 2}",
        "data.format=h5"}) {
    const std::string message = error_of("hooks: [{profile: {first_step: 1}}]\n", {assignment});
    EXPECT_THAT(message, StartsWith("--set " + assignment + ": ")) << message;
    EXPECT_THAT(message, Not(HasSubstr("a.yaml:"))) << message;
  }
  EXPECT_THAT(
      error_of("hooks: [{profile: {last_step: 4, first_step: 1}}]\n", {"hooks.profile.first_step=20"}),
      StartsWith("--set hooks.profile.first_step=20: hook profile, first_step: last_step 4 is before"));
  EXPECT_THAT(
      error_of("gradients: {clip_value: 1}\n", {"gradients.clip_norm=1"}),
      StartsWith("--set gradients.clip_norm=1: section gradients, clip_norm: clip_value is given, too"));
}

TEST(Config, EitherEpochsOrSteps) {
  EXPECT_THAT(error_of("", {"train.steps=5", "train.epochs=3"}),
              HasSubstr("both epochs and steps are given"));
  EXPECT_THAT(error_of("", {"train.epochs=null"}), HasSubstr("neither epochs nor steps is given"));
  for (const std::vector<std::string>& overrides :
       {std::vector<std::string>{"train.steps=5"}, {"train.steps=5", "train.epochs=null"}}) {
    const Config config = config_of("", overrides);
    EXPECT_EQ(config.train.steps, 5);
    EXPECT_FALSE(config.train.epochs);
  }
}

TEST(Config, PathsMayLeaveOutTheNameOfAChoice) {
  const Config config = config_of("hooks: [{logging: {every_steps: 1}}]\n",
                                  {"optimizer.learning_rate=0.25", "model.layers.dense1.units=7",
                                   "hooks.logging.every_steps=9", "model.layers.0.bias=false"});
  EXPECT_EQ(to_yaml(*config.root.find("optimizer")), "adam:\n  learning_rate: 0.25\n");
  EXPECT_EQ(to_yaml(*config.root.find("model")->find("layers")), "- dense:\n    units: 7\n    bias: false\n");
  EXPECT_EQ(config.hooks.at(0).options.integer("every_steps"), 9);
}

TEST(Config, NullMeansOnlyAtTheEnd) {
  EXPECT_EQ(config_of("eval: {every_epochs: null}\n").eval.every_epochs, 0);
  EXPECT_EQ(config_of("eval: {every_epochs: 0}\n").eval.every_epochs, 0);
}

TEST(Config, RelativePathsBeginAtTheFile) {
  const TemporaryFolder folder;
  const Config config = load_config(folder.write("sub/a.yaml", kSmallest));
  EXPECT_EQ(config.base_directory, (folder.path() / "sub").string());
  EXPECT_EQ(config.hook_setting().resolved("../d.csv"), (folder.path() / "d.csv").string());
  EXPECT_EQ(config.hook_setting().resolved("/d.csv"), "/d.csv");
  const Config moved =
      load_config(folder.write("b.yaml", std::string(kSmallest) + "base_directory: elsewhere\n"));
  EXPECT_EQ(moved.hook_setting().resolved("d.csv"), (folder.path() / "elsewhere/d.csv").string());
}

TEST(Config, DefaultRunDirectory) { EXPECT_EQ(default_run_directory("examples/digits.yaml"), "runs/digits"); }

// What a run directory holds must give the same run again, from another folder too.
TEST(Config, ResolvedConfigurationIsCompleteAndReadsBack) {
  const TemporaryFolder folder;
  const std::vector<std::string> overrides{"seed=7", "eval.batch_size=3"};
  const Config config = load_config(folder.write("sub/a.yaml", kSmallest), overrides);
  const std::string text = resolved_config_text(config);
  for (const ConfigSection& section : config_sections()) {
    if (section.name == "sweep") continue;  // no part of a run
    for (const ParamSpec& spec : section.table) {
      if (spec.name == "include") continue;  // it is resolved
      EXPECT_THAT(text, HasSubstr(std::string(spec.name) + ":"));
    }
  }
  const Config again = load_config(folder.write("run/config.yaml", text));
  EXPECT_EQ(again.base_directory, config.base_directory);
  EXPECT_EQ(again.general.seed, 7);
  EXPECT_EQ(again.eval.batch_size, 3);
  EXPECT_EQ(again.comm.overlap, CommunicationOptions::Overlap::automatic);
  EXPECT_EQ(resolved_config_text(again), text);
}

/// As a program makes it.
Node without_positions(Node node) {
  node.where.clear();
  node.entry_where.assign(node.entries.size(), "");
  for (Node& item : node.items) item = without_positions(std::move(item));
  for (auto& [key, value] : node.entries) value = without_positions(std::move(value));
  return node;
}
Node node_of(const std::string& text) { return without_positions(parse_yaml(text, "a.yaml")); }
Config program_config(const std::string& more, ConfigUse use = ConfigUse::training) {
  return config_from_node(node_of(kSmallest + more), "the program", use);
}

TEST(ConfigFromNode, HasTheValuesOfTheSameText) {
  EXPECT_EQ(resolved_config_text(program_config("seed: 7\ncomm: {timeout_seconds: 7}\n")),
            resolved_config_text(config_of("seed: 7\ncomm: {timeout_seconds: 7}\n")));
}

TEST(ConfigFromNode, MistakesAreNamedWithTheirPath) {
  const auto error = [](const std::string& more) { return message_of([&] { program_config(more); }); };
  EXPECT_THAT(error("checkpoint: {keep: -1}\n"),
              StartsWith("the program, checkpoint.keep: section checkpoint, keep: must be [0, 1e9]"));
  EXPECT_THAT(error("trian: {}\n"), StartsWith("the program, trian: unknown key 'trian'"));
  Node root = node_of(kSmallest);
  for (auto& [key, value] : root.entries)
    if (key == "model") value = node_of("layers: [relu, {dense: {units: 0}}]");
  EXPECT_THAT(message_of([&] { config_from_node(root, "the program", ConfigUse::training); }),
              StartsWith("the program, model.layers.1.dense.units: "));
}

TEST(ConfigFromNode, ANodeOfAFileKeepsItsPosition) {
  Node root = node_of(kSmallest);
  for (auto& [key, value] : root.entries)
    if (key == "model") value = parse_yaml("layers:\n  - dense: {units: 0}\n", "net.yaml");
  EXPECT_THAT(message_of([&] { config_from_node(root, "the program", ConfigUse::training); }),
              StartsWith("net.yaml:2:20: "));
}

TEST(ConfigFromNode, ValuesStandForThemselves) {
  Node root = node_of(kSmallest);
  for (auto& [key, value] : root.entries)
    if (key == "data") value = node_of("{format: csv, path: '${NOT_SET}/d.csv', shape: [4]}");
  const Config config = config_from_node(root, "the program", ConfigUse::training);
  EXPECT_THAT(config.data.train.strings("path"), ElementsAre("${NOT_SET}/d.csv"));
  EXPECT_THAT(resolved_config_text(config), HasSubstr("$${NOT_SET}"));
}

TEST(ConfigFromNode, InferenceNeedsNeitherAnOptimizerNorAnEnd) {
  const std::string text =
      "data: {format: csv, path: d.csv, shape: [4]}\nmodel: {layers: [{dense: {units: 2}}]}\n"
      "train: {batch_size: 8}\n";
  const Config config = config_from_node(node_of(text), "the program", ConfigUse::inference);
  EXPECT_EQ(config.train.batch_size, 8);
  EXPECT_EQ(config.train.steps, std::nullopt);
  EXPECT_TRUE(config.optimizer.entry.name.empty());
  EXPECT_THAT(message_of([&] { config_from_node(node_of(text), "the program", ConfigUse::training); }),
              AllOf(HasSubstr("optimizer"), HasSubstr("neither epochs nor steps is given")));
}

TEST(ChangedConfig, TakesOverridesAndKeepsPositions) {
  const Config config = config_of("checkpoint:\n  keep: 3\n");
  const std::vector<std::string> steps{"train.steps=9", "train.epochs=null"};
  const Config changed = changed_config(config, resolved_config(config), steps);
  EXPECT_EQ(changed.train.steps, 9);
  EXPECT_EQ(changed.train.epochs, std::nullopt);
  EXPECT_EQ(changed.base_directory, config.base_directory);
  EXPECT_EQ(changed.section("checkpoint").where("keep"), "a.yaml:8:9");
  EXPECT_EQ(resolved_config_text(changed),
            resolved_config_text(config_from_text(resolved_config_text(config), "b.yaml", steps)));
}

}  // namespace
}  // namespace lockstep
