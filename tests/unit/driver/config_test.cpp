// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/config/config.h"

#include <gmock/gmock.h>

#include "driver/config/config_reference.h"
#include "driver/config/config_tables.h"
#include "driver/config/yaml_node.h"
#include "support/error_support.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;
using testing::message_of;
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

TEST(Config, Defaults) {
  const Config config = config_of("");
  EXPECT_EQ(config.general.seed, 0);
  EXPECT_FALSE(config.general.shards);
  EXPECT_FALSE(config.general.threads);
  EXPECT_EQ(config.train.batch_size, 8);
  EXPECT_EQ(config.train.epochs, 2);
  EXPECT_TRUE(config.train.shuffle);
  EXPECT_FALSE(config.train.drop_remainder);
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
              StartsWith("a.yaml:8:9: section checkpoint, keep: must be >= 0"));
  EXPECT_THAT(error_of("eval: 3\n"), StartsWith("a.yaml:7:7: section eval must be a map"));
  EXPECT_THAT(error_of("precision: {compute: bfloat15}\n"), HasSubstr("Did you mean 'bfloat16'?"));
  EXPECT_THAT(error_of("", {"train.batch_sizes=4"}),
              StartsWith("--set train.batch_sizes=4: unknown key 'batch_sizes' in section train\n  Did you "
                         "mean 'batch_size'?"));
  EXPECT_THAT(message_of([] { config_from_text("", "a.yaml"); }),
              HasSubstr("a.yaml: the configuration is empty"));
  EXPECT_THAT(message_of([] { config_from_text("data: {}\nmodel: {}\noptimizer: {}\n", "a.yaml"); }),
              StartsWith("a.yaml:1:1: section train needs 'batch_size'"));
}

TEST(Config, EitherEpochsOrSteps) {
  EXPECT_THAT(error_of("", {"train.steps=5"}), HasSubstr("both epochs and steps are given"));
  EXPECT_THAT(error_of("", {"train.epochs=null"}), HasSubstr("neither epochs nor steps is given"));
  const Config config = config_of("", {"train.steps=5", "train.epochs=null"});
  EXPECT_EQ(config.train.steps, 5);
  EXPECT_FALSE(config.train.epochs);
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
  for (const ConfigSection& section : config_sections())
    for (const ParamSpec& spec : section.table) EXPECT_THAT(text, HasSubstr(std::string(spec.name) + ":"));
  const Config again = load_config(folder.write("run/config.yaml", text));
  EXPECT_EQ(again.base_directory, config.base_directory);
  EXPECT_EQ(again.general.seed, 7);
  EXPECT_EQ(again.eval.batch_size, 3);
  EXPECT_EQ(again.comm.overlap, CommunicationOptions::Overlap::automatic);
  EXPECT_EQ(resolved_config_text(again), text);
}

TEST(ConfigReference, NamesEveryOptionAndOtherTables) {
  constexpr ParamSpec table[] = {
      {"padding", ParamType::string, "same", "same|valid", "what lies beyond the border"}};
  const ReferenceSection layer{"Layer conv2d", "Convolution.", table};
  const std::string text = config_reference(std::span(&layer, 1));
  for (const ConfigSection& section : config_sections())
    for (const ParamSpec& spec : section.table)
      EXPECT_THAT(text, HasSubstr("| `" + std::string(spec.name) + "` | "));
  EXPECT_THAT(text, HasSubstr("\n## Layer conv2d\n\nConvolution.\n\n| key |"));
  EXPECT_THAT(text,
              HasSubstr("| `padding` | text | `same` | same\\|valid | what lies beyond the border |\n"));
  EXPECT_THAT(text, HasSubstr("| `batch_size` | whole number | required | > 0 samples |"));
}

}  // namespace
}  // namespace lockstep
