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
    "data: {reader: csv}\nmodel: {}\noptimizer: {}\ntrain:\n  batch_size: 8\n  epochs: 2\n";

Config config_of(const std::string& more, std::vector<std::string> overrides = {}) {
  return config_from_text(kSmallest + more, "a.yaml", overrides);
}
std::string error_of(const std::string& more, std::vector<std::string> overrides = {}) {
  return message_of([&] { config_of(more, overrides); });
}

TEST(Config, Defaults) {
  const Config config = config_of("");
  EXPECT_EQ(config.general.integer("seed"), 0);
  EXPECT_FALSE(config.general.has("shards"));
  EXPECT_FALSE(config.general.has("threads"));
  EXPECT_EQ(config.train.integer("batch_size"), 8);
  EXPECT_EQ(config.train.integer("epochs"), 2);
  EXPECT_TRUE(config.train.boolean("shuffle"));
  EXPECT_FALSE(config.train.boolean("drop_remainder"));
  EXPECT_EQ(config.train.string("on_nan"), "error");
  EXPECT_FALSE(config.eval.has("batch_size"));
  EXPECT_EQ(config.eval.integer("every_epochs"), 1);
  EXPECT_EQ(config.checkpoint.integer("keep"), 5);
  EXPECT_EQ(config.summary.integer("every_steps"), 10);
  EXPECT_EQ(config.comm.string("reduction"), "tree");
  EXPECT_EQ(config.comm.real("bucket_first_mb"), 1.0);
  EXPECT_EQ(comm_timeout_seconds(config), std::nullopt);
  EXPECT_EQ(comm_timeout_seconds(config_of("comm: {timeout_seconds: 7}\n")), 7.0);
  EXPECT_EQ(config.precision.string("compute"), "float32");
  EXPECT_EQ(config.data.find("reader")->text, "csv");
  EXPECT_EQ(config.model.where, "a.yaml:2:8");
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
  EXPECT_EQ(config.train.integer("steps"), 5);
  EXPECT_FALSE(config.train.has("epochs"));
}

TEST(Config, NullMeansOnlyAtTheEnd) {
  EXPECT_FALSE(config_of("eval: {every_epochs: null}\n").eval.has("every_epochs"));
  EXPECT_EQ(config_of("eval: {every_epochs: 0}\n").eval.integer("every_epochs"), 0);
}

TEST(Config, RelativePathsBeginAtTheFile) {
  const TemporaryFolder folder;
  const Config config = load_config(folder.write("sub/a.yaml", kSmallest));
  EXPECT_EQ(config.base_directory, (folder.path() / "sub").string());
  EXPECT_EQ(resolve_path(config, "../d.csv"), (folder.path() / "d.csv").string());
  EXPECT_EQ(resolve_path(config, "/d.csv"), "/d.csv");
  const Config moved =
      load_config(folder.write("b.yaml", std::string(kSmallest) + "base_directory: elsewhere\n"));
  EXPECT_EQ(resolve_path(moved, "d.csv"), (folder.path() / "elsewhere/d.csv").string());
}

TEST(Config, DefaultRunDirectory) { EXPECT_EQ(default_run_directory("examples/digits.yaml"), "runs/digits"); }

// What a run directory holds must give the same run again, from another folder too.
TEST(Config, ResolvedConfigurationIsCompleteAndReadsBack) {
  const TemporaryFolder folder;
  const std::vector<std::string> overrides{"seed=7", "eval.batch_size=3"};
  const Config config = load_config(folder.write("sub/a.yaml", kSmallest), overrides);
  const std::string text = to_yaml(resolved_config(config));
  for (const ConfigSection& section : config_sections())
    for (const ParamSpec& spec : section.table) EXPECT_THAT(text, HasSubstr(std::string(spec.name) + ":"));
  const Config again = load_config(folder.write("run/config.yaml", text));
  EXPECT_EQ(again.base_directory, config.base_directory);
  EXPECT_EQ(again.general.integer("seed"), 7);
  EXPECT_EQ(again.eval.integer("batch_size"), 3);
  EXPECT_EQ(again.comm.string("overlap"), "auto");
  EXPECT_EQ(to_yaml(resolved_config(again)), text);
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
