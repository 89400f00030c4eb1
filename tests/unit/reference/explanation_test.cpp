// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "reference/explanation.h"

#include <gmock/gmock.h>

#include "config/yaml_node.h"
#include "optim/scheduled_number.h"
#include "reference/option_catalogue.h"
#include "support/error_support.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::message_of;
using ::testing::Not;
using ::testing::StartsWith;

TEST(Explanation, AnOptionHasTypeRangeDefaultPlaceAndExample) {
  EXPECT_THAT(
      explanation("train.batch_size"),
      AllOf(StartsWith("train.batch_size\n  Samples per global step"), HasSubstr("type     whole number\n"),
            HasSubstr("range    [1, 2147483647] samples\n"), HasSubstr("default  none: it must be given\n"),
            HasSubstr("where    section train\n"), HasSubstr("    train:\n      batch_size: 64\n"),
            HasSubstr("--set 'train.batch_size=64'")));
  EXPECT_THAT(explanation("seed"), AllOf(StartsWith("seed\n"), HasSubstr("the top level"),
                                         HasSubstr("\n    seed: "), HasSubstr("\nAlso: sweep.seed, ")));
}

TEST(Explanation, OptionsOfLayersAreFoundByPath) {
  const std::string filters = explanation("conv2d.filters");
  EXPECT_THAT(filters, AllOf(StartsWith("conv2d.filters\n"), HasSubstr("where    an item of model.layers\n"),
                             HasSubstr("- conv2d: {filters: 16, kernel: 3}")));
  EXPECT_EQ(explanation("model.layers.conv2d3.filters"), filters);
  EXPECT_EQ(explanation("Conv2D.filters=3"), filters);
  EXPECT_THAT(explanation("model.layers.stem.name"),
              AllOf(HasSubstr("layer.name\n"), Not(HasSubstr("Head"))));
  EXPECT_THAT(explanation("optimizer.adam.beta1"),
              AllOf(StartsWith("adam.beta1\n"), HasSubstr("number or schedule")));
  EXPECT_THAT(explanation("data.train.rows"), HasSubstr("rows\n"));
}

TEST(Explanation, OptionsOfASectionWithinASection) {
  EXPECT_THAT(explanation("sweep.halving.first"), StartsWith("sweep.halving.first\n"));
  EXPECT_THAT(explanation("data.mix.mixup"), StartsWith("data.mix.mixup\n"));
}

TEST(Explanation, WhatHasOptionsIsExplainedWithThem) {
  EXPECT_THAT(explanation("conv2d"),
              AllOf(StartsWith("conv2d: layer\n"), HasSubstr("filters"), HasSubstr("must be given"),
                    HasSubstr("Every layer: name, inputs"), HasSubstr("lockstep explain conv2d.filters")));
  EXPECT_THAT(explanation("csv"), AllOf(StartsWith("csv: reader\n"), HasSubstr("format: csv")));
  EXPECT_THAT(explanation("train"), AllOf(StartsWith("train: section\n"), HasSubstr("batch_size")));
  EXPECT_THAT(explanation("layer conv2d"), StartsWith("conv2d: layer\n"));
}

TEST(Explanation, ManyOfOneNameAreAList) {
  EXPECT_THAT(explanation("kernel_initializer"),
              AllOf(HasSubstr("have this name"), HasSubstr("  dense.kernel_initializer"),
                    HasSubstr("initial kernel")));
}

TEST(Explanation, WordsOfOtherFrameworks) {
  EXPECT_THAT(explanation("nn.Linear"), AllOf(HasSubstr("'nn.Linear' (layer) is called 'dense' here"),
                                              HasSubstr("See: lockstep explain dense\n")));
  EXPECT_THAT(explanation("lr"), AllOf(HasSubstr("is called 'learning_rate' here"),
                                       HasSubstr("See: lockstep explain learning_rate\n")));
  EXPECT_THAT(explanation("tf.keras.layers.BatchNorm"),
              AllOf(StartsWith("batch_norm: layer\n"), Not(HasSubstr("other"))));
  EXPECT_THAT(explanation("EarlyStopping"), HasSubstr("stop_if_no_"));
  EXPECT_THAT(explanation("num_epochs"), HasSubstr("See: lockstep explain train.epochs\n"));
}

TEST(Explanation, AMisspeltWordGetsTheNearest) {
  const auto error_of = [](const char* key) {
    return message_of([&] { explanation(key); }, ErrorKind::usage);
  };
  EXPECT_THAT(error_of("batchsze"),
              AllOf(HasSubstr("nothing is called 'batchsze'"), HasSubstr("Did you mean 'batch_size'?")));
  EXPECT_THAT(error_of("conv2d.filtres"), HasSubstr("Did you mean 'conv2d.filters'?"));
  EXPECT_THAT(error_of("trian.epochs"), HasSubstr("Did you mean 'train.epochs'?"));
  EXPECT_THAT(error_of("zzzzzzzzz"),
              AllOf(HasSubstr("`lockstep explain` alone"), Not(HasSubstr("Did you mean"))));
  EXPECT_THAT(error_of(""), HasSubstr("nothing is called ''"));
}

TEST(Explanation, TheIndexNamesAll) {
  EXPECT_THAT(explanation_index(),
              AllOf(HasSubstr("\nlayer\n  dense, conv2d, "), HasSubstr("shampoo"), HasSubstr("tfrecord")));
}

// Every option has an example that the option takes, in lines that are YAML.
TEST(Explanation, EveryExampleIsGood) {
  int options = 0;
  for (const CatalogueEntry& entry : option_catalogue()) {
    EXPECT_NO_THROW(parse_yaml(example_lines(entry), "a.yaml")) << entry.title << "\n"
                                                                << example_lines(entry);
    for (const ParamSpec& option : entry.table) {
      ++options;
      const std::string lines = example_lines(entry, &option);
      EXPECT_THAT(lines, HasSubstr(std::string(option.name) + ": ")) << entry.title;
      EXPECT_NO_THROW(parse_yaml(lines, "a.yaml")) << entry.title << "\n" << lines;
      const Node value =
          parse_yaml(std::string(option.name) + ": " + example_value(entry.title, option), "a.yaml");
      EXPECT_NO_THROW(Params(value, {&option, 1}, entry.title)) << entry.title << ", " << option.name;
      EXPECT_NE(example_value(entry.title, option), "null") << entry.title << ", " << option.name;
    }
  }
  EXPECT_GT(options, 500);
}

}  // namespace
}  // namespace lockstep
