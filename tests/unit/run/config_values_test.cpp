// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/sections/config_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/yaml_node.h"

namespace lockstep {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const char* const kConfig = R"(
data: {format: csv, path: a.csv, scale: 0.0625, eval: {rows: [0, 10]}}
model:
  layers:
    - conv2d: {name: first, filters: 8, kernel_size: 3}
    - relu
    - dropout: {rate: 0.2}
    - dense: {units: 10}
optimizer: {momentum: {learning_rate: 0.1}}
train: {batch_size: 8, epochs: 2}
hooks: [logging: {every_steps: 10}]
)";

std::vector<ConfigValue> values(const std::string& text, const std::string& base = "/data") {
  return config_values(parse_yaml(text, "a.yaml"), base);
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const auto at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), by);
}

/// "result train.batch_size: 8 -> 16", by a replacement in kConfig.
std::vector<std::string> changes(const std::string& what, const std::string& by) {
  std::vector<std::string> found;
  for (const ConfigDifference& d : config_differences(values(kConfig), values(replaced(kConfig, what, by))))
    found.push_back(fmt::format("{} {}: {} -> {}",
                                d.change == Change::result  ? "result"
                                : d.change == Change::free  ? "free"
                                : d.change == Change::place ? "place"
                                                            : "fixed",
                                d.path, d.before.value_or("nothing"), d.now.value_or("nothing")));
  return found;
}

TEST(ConfigValues, TheLengthOfARunCountsWhereAScheduleFollowsIt) {
  const auto change_of_epochs = [](const std::string& rate) {
    const std::string config = replaced(kConfig, "learning_rate: 0.1", "learning_rate: " + rate);
    return config_differences(values(config), values(replaced(config, "epochs: 2", "epochs: 3")))
        .at(0)
        .change;
  };
  EXPECT_EQ(change_of_epochs("{cosine_decay: {initial: 0.1}}"), Change::result);
  EXPECT_EQ(change_of_epochs("{one_cycle: {peak: 0.1, total_steps: null}}"), Change::result);
  EXPECT_EQ(change_of_epochs("{cosine_decay: {initial: 0.1, decay_steps: 40}}"), Change::free);
  EXPECT_EQ(change_of_epochs("{cosine_restarts: {initial: 0.1, first_decay_steps: 40}}"), Change::free);
  EXPECT_EQ(change_of_epochs("0.1"), Change::free);
}

TEST(ConfigValues, OtherWaysToWriteTheSameAreNoChange) {
  EXPECT_THAT(changes("learning_rate: 0.1", "learning_rate: 1.0e-1"), IsEmpty());
  EXPECT_THAT(changes("learning_rate: 0.1", "learning_rate: 0.1, momentum: 0.9"), IsEmpty());
  EXPECT_THAT(changes("- relu", "- relu: {}"), IsEmpty());
  EXPECT_THAT(changes("epochs: 2", "epochs: 2, shuffle: true"), IsEmpty());
  EXPECT_THAT(changes("name: first, filters: 8", "filters: 8, name: first, padding: same"), IsEmpty());
  EXPECT_THAT(changes("scale: 0.0625, eval: {rows: [0, 10]}",
                      "train: {scale: 0.0625}, eval: {scale: 0.0625, rows: [0, 10]}"),
              IsEmpty());
  EXPECT_THAT(changes("path: a.csv", "path: /data/b/../a.csv"), IsEmpty());
  EXPECT_THAT(changes("path: a.csv", "path: [a.csv]"), IsEmpty());
}

TEST(ConfigValues, AColumnInQuotesIsAnother) {
  EXPECT_THAT(changes("scale: 0.0625", "scale: 0.0625, columns: [\"1\"]"),
              ElementsAre("result data.columns: null -> [\"1\"]"));
  const auto of = [](const std::string& option) {
    return values(replaced(kConfig, "scale: 0.0625", "scale: 0.0625, " + option));
  };
  EXPECT_THAT(config_differences(of("missing: {\"1\": 5}"), of("missing: {1: 5}")), testing::SizeIs(1));
  EXPECT_THAT(config_differences(of("columns: [\"1\"]"), of("columns: [1]")), testing::SizeIs(1));
  EXPECT_THAT(config_differences(of("missing: {\"a\": 5}"), of("missing: {a: 5}")), IsEmpty());
}

TEST(ConfigValues, WhatChangesTheResult) {
  EXPECT_THAT(changes("batch_size: 8", "batch_size: 16"), ElementsAre("result train.batch_size: 8 -> 16"));
  EXPECT_THAT(changes("filters: 8", "filters: 9"), ElementsAre("result model.layers.first.filters: 8 -> 9"));
  EXPECT_THAT(changes("rate: 0.2", "rate: 0.3"),
              ElementsAre("result model.layers.dropout1.rate: 0.2 -> 0.3"));
  EXPECT_THAT(changes("learning_rate: 0.1", "learning_rate: 0.2"),
              ElementsAre("result optimizer.learning_rate: 0.1 -> 0.2"));
  EXPECT_THAT(changes("learning_rate: 0.1",
                      "learning_rate: {exponential_decay: {initial: 1, decay_steps: 9, decay_rate: 0.5}}"),
              ElementsAre("result optimizer.learning_rate: 0.1 -> "
                          "{exponential_decay: {decay_rate: 0.5, decay_steps: 9, initial: 1}}"));
  EXPECT_THAT(changes("learning_rate: 0.1", "learning_rate: 0.1, momentum: {constant: {value: 0.9}}"),
              ElementsAre("result optimizer.momentum: 0.9 -> {constant: {value: 0.9}}"));
  EXPECT_THAT(changes("dropout: {rate: 0.2}", "dropout: {rate: {constant: {value: 0.2}}}"),
              ElementsAre("result model.layers.dropout1.rate: 0.2 -> {constant: {value: 0.2}}"));
  EXPECT_THAT(
      changes("momentum: {learning_rate: 0.1}", "adam: {learning_rate: 0.1}"),
      ElementsAre("result optimizer: {momentum: {learning_rate: 0.1}} -> {adam: {learning_rate: 0.1}}"));
  EXPECT_THAT(changes("rows: [0, 10]", "rows: [0, 11]"),
              ElementsAre("result data.eval.rows: [0, 10] -> [0, 11]"));
  EXPECT_THAT(changes("scale: 0.0625", "scale: 0.5"), ElementsAre("result data.scale: 0.0625 -> 0.5"));
  EXPECT_THAT(changes("eval: {rows", "eval: {scale: 0.5, rows"),
              ElementsAre("result data.eval.scale: 0.0625 -> 0.5"));
}

TEST(ConfigValues, LayersAddedRemovedAndSwapped) {
  EXPECT_THAT(changes("- dropout: {rate: 0.2}\n    ", ""),
              ElementsAre("result model.layers.dropout1: {dropout: {rate: 0.2}} -> nothing"));
  EXPECT_THAT(changes("- relu\n", "- relu\n    - gelu\n"),
              ElementsAre("result model.layers.gelu1: nothing -> gelu"));
  EXPECT_THAT(
      changes("- relu\n    - dropout: {rate: 0.2}\n", "- dropout: {rate: 0.2}\n    - relu\n"),
      ElementsAre("result model.layers: first, relu1, dropout1, dense1 -> first, dropout1, relu1, dense1"));
}

TEST(ConfigValues, WhatMayChangeInARun) {
  EXPECT_THAT(changes("epochs: 2", "epochs: 3, time_limit: 2h"),
              ElementsAre("free train.epochs: 2 -> 3", "free train.time_limit: null -> 2h"));
  EXPECT_THAT(changes("hooks: [logging: {every_steps: 10}]", "summary: {every_steps: 5}\nthreads: 2"),
              ElementsAre("free threads: null -> 2", "free summary.every_steps: 10 -> 5",
                          "free hooks.logging1: {logging: {every_steps: 10}} -> nothing"));
  EXPECT_THAT(changes("every_steps: 10", "every_steps: 20"),
              ElementsAre("free hooks.logging1.every_steps: 10 -> 20"));
  EXPECT_THAT(changes("path: a.csv", "path: b.csv"),
              ElementsAre("place data.path: /data/a.csv -> /data/b.csv"));
  EXPECT_THAT(changes("optimizer:", "seed: 2\noptimizer:"), ElementsAre("fixed seed: 0 -> 2"));
}

TEST(ConfigValues, UnknownKeysAreComparedAsWritten) {
  EXPECT_THAT(changes("epochs: 2", "epochs: 2, of_a_later_version: 1.0"),
              ElementsAre("result train.of_a_later_version: nothing -> 1"));
  EXPECT_THAT(changes("- relu", "- mine: {a: 1}"),
              ElementsAre("result model.layers.mine1: nothing -> {mine: {a: 1}}",
                          "result model.layers.relu1: relu -> nothing"));
}

TEST(ConfigValues, ListsOfFilesMayMove) {
  EXPECT_THAT(changes("path: a.csv", "path: [a.csv, ../b.csv]"),
              ElementsAre("place data.path: /data/a.csv -> [/data/a.csv, /b.csv]"));
  EXPECT_THAT(changes("path: a.csv", "path: [a.csv, a.csv]"),
              ElementsAre("place data.path: /data/a.csv -> [/data/a.csv, /data/a.csv]"));
  const std::string list = replaced(kConfig, "path: a.csv", "path: [a.csv, b.csv]");
  const std::string other = replaced(kConfig, "path: a.csv", "path: [/data/a.csv, x/../b.csv]");
  EXPECT_THAT(config_differences(values(list), values(other)), IsEmpty()) << "the same files";
  const auto moved = config_differences(values(list, "/here"), values(list, "/there"));
  EXPECT_EQ(diff_text(moved),
            "\n  - data.path: [/here/a.csv, /here/b.csv]\n  + data.path: [/there/a.csv, /there/b.csv]");
  EXPECT_EQ(moved.at(0).change, Change::place);
}

const char* const kBlocks = R"(
data: {format: csv, path: a.csv}
model:
  blocks:
    part: {parameters: {units: 4, act: relu}, layers: [dense: {name: d, units: $units}, $act]}
  layers: [part: {units: 8}, repeat: {times: 3, layers: [dense: {units: 5}]}, dense: {units: 10}]
optimizer: adam
train: {batch_size: 8, epochs: 2}
)";

std::string diff_of_blocks(const std::string& what, const std::string& by) {
  return diff_text(config_differences(values(kBlocks), values(replaced(kBlocks, what, by))));
}

TEST(ConfigValues, ChangesWithinBlocksAreShownAlone) {
  EXPECT_EQ(diff_of_blocks("units: $units", "units: $(2 * units)"),
            "\n  - model.blocks.part.layers.d.units: $units"
            "\n  + model.blocks.part.layers.d.units: $(2 * units)");
  EXPECT_EQ(diff_of_blocks("act: relu", "act: tanh"),
            "\n  - model.blocks.part.parameters.act: relu\n  + model.blocks.part.parameters.act: tanh");
  EXPECT_EQ(diff_of_blocks("part: {units: 8}", "part: {units: 9}"),
            "\n  - model.layers.part1.units: 8\n  + model.layers.part1.units: 9");
  EXPECT_EQ(
      diff_of_blocks("units: 5", "units: 6"),
      "\n  - model.layers.repeat1.layers.dense1.units: 5\n  + model.layers.repeat1.layers.dense1.units: 6");
}

TEST(ConfigValues, LongItemsAreShownAsYaml) {
  EXPECT_EQ(diff_of_blocks("repeat: {times: 3, layers: [dense: {units: 5}]}, ", ""),
            "\n  - model.layers.repeat1: {repeat: {layers: [{dense: {units: 5}}], times: 3}}");
  EXPECT_EQ(
      diff_of_blocks("    part: {parameters: {units: 4, act: relu}",
                     "    other: {parameters: {units: 4, act: relu}, layers: [dense: {name: first, units: "
                     "4}, dense: {name: second, units: 4}]}\n"
                     "    part: {parameters: {units: 4, act: relu}"),
      R"(
  + model.blocks.other:
  +   parameters:
  +     units: 4
  +     act: relu
  +   layers:
  +     - dense:
  +         name: first
  +         units: 4
  +     - dense:
  +         name: second
  +         units: 4)");
}

TEST(ConfigValues, TheDifferenceReadsAsADiff) {
  const auto differences =
      config_differences(values(kConfig), values(replaced(kConfig, "epochs: 2", "epochs: 3")));
  EXPECT_EQ(diff_text(differences), "\n  - train.epochs: 2\n  + train.epochs: 3");
}

}  // namespace
}  // namespace lockstep
