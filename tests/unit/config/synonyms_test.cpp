// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "config/synonyms.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <map>
#include <set>
#include <vector>

#include "support/error_support.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Words = std::vector<std::string_view>;

const Words kOptimizers{"gradient_descent", "momentum", "adam"};

TEST(Synonyms, NamesOfOtherPrograms) {
  EXPECT_THAT(advice_for_name("optimizer", "SGD", kOptimizers),
              StartsWith("It is called 'gradient_descent' here"));
  EXPECT_THAT(advice_for_name("loss", "mse", Words{"mean_squared_error"}), HasSubstr("'mean_squared_error'"));
  EXPECT_THAT(advice_for_name("layer", "MaxPooling2D", Words{"max_pool"}), HasSubstr("'max_pool'"));
  EXPECT_THAT(advice_for_name("layer", "Conv2D", Words{"conv2d", "conv3d"}),
              StartsWith("Did you mean 'conv2d'? Known: "));
  EXPECT_THAT(advice_for_key("lr", "optimizer adam", Words{"learning_rate"}), HasSubstr("'learning_rate'"));
  EXPECT_THAT(advice_for_choice("device", "gpu", Words{"cpu", "cuda"}, "help"), HasSubstr("'cuda'"));
}

TEST(Synonyms, ToolsOfOtherTrainersAreAnswered) {
  for (const char* word :
       {"DistributedDataParallel", "DistributedSampler", "DataLoader", "torchrun", "SummaryWriter",
        "seed_everything", "LRFinder", "ConcatDataset", "torch.save", "load_state_dict"})
    EXPECT_FALSE(synonyms_of(word).empty()) << word;
}

// The nearest name would drop what the word stands for.
TEST(Synonyms, NothingIsDroppedInSilence) {
  for (const char* name : {"adamax", "adafactor", "adabelief", "rprop"})
    EXPECT_THAT(advice_for_name("optimizer", name, kOptimizers), Not(HasSubstr("Did you mean"))) << name;
  EXPECT_THAT(advice_for_key("weight_decay", "optimizer ftrl", Words{"learning_rate"}),
              HasSubstr("model.regularization"));
  EXPECT_THAT(advice_for_name("layer", "prelu", Words{"relu", "leaky_relu"}), Not(HasSubstr("Did you mean")));
}

TEST(Synonyms, NamesOfUpdateRulesFindThem) {
  const std::vector<std::pair<const char*, const char*>> rules = {{"AdamW", "adamw"},
                                                                  {"SGDW", "momentum"},
                                                                  {"AMSGrad", "adam"},
                                                                  {"RMSprop", "rmsprop"},
                                                                  {"NAdam", "nadam"},
                                                                  {"RAdam", "radam"},
                                                                  {"RectifiedAdam", "radam"},
                                                                  {"FtrlOptimizer", "ftrl"},
                                                                  {"FOBOS", "proximal_gradient_descent"},
                                                                  {"AdagradDAOptimizer", "adagrad_da"}};
  const Words known{
      "gradient_descent",          "momentum",  "adam", "adamw", "nadam", "radam", "rmsprop", "ftrl",
      "proximal_gradient_descent", "adagrad_da"};
  for (const auto& [name, here] : rules)
    EXPECT_THAT(advice_for_name("optimizer", name, known), HasSubstr(fmt::format("'{}'", here))) << name;
  EXPECT_THAT(advice_for_key("alpha", "optimizer rmsprop", Words{"learning_rate", "decay"}),
              StartsWith("It is called 'decay'"));
  EXPECT_THAT(advice_for_key("l2_regularization_strength", "optimizer ftrl", Words{"l1", "l2"}),
              StartsWith("It is called 'l2'"));
  EXPECT_THAT(advice_for_key("wd", "optimizer adamw", Words{"weight_decay"}),
              StartsWith("It is called 'weight_decay'"));
}

TEST(Synonyms, NamesMayBeQualified) {
  EXPECT_THAT(advice_for_name("layer", "nn.Linear", Words{"dense"}),
              StartsWith("It is called 'dense' here."));
  EXPECT_THAT(advice_for_name("layer", "tf.keras.layers.Conv2D", Words{"conv2d", "dense"}),
              StartsWith("Did you mean 'conv2d'?"));
  EXPECT_THAT(advice_for_name("optimizer", "torch.optim.Adamax", kOptimizers),
              Not(HasSubstr("Did you mean")));
  EXPECT_EQ(advice_for_name("layer", "x.", Words{"dense"}), "Known: dense.");
}

// Each of these got the nearest name, which does something else.
TEST(Synonyms, WhatTheNearestNameWouldMistake) {
  EXPECT_THAT(advice_for_name("layer", "Unflatten", Words{"flatten", "reshape"}),
              HasSubstr("called 'reshape'"));
  EXPECT_THAT(advice_for_name("layer", "EmbeddingBag", Words{"embedding"}), HasSubstr("reduce"));
  EXPECT_THAT(advice_for_key("keep_last", "section checkpoint", Words{"keep", "keep_best"}),
              StartsWith("It is called 'keep' here."));
  EXPECT_THAT(advice_for_key("label", "section data (train, reader csv)", Words{"label_column"}),
              HasSubstr("'label_column'"));
}

// Those of trainers come after the others, and are used where these say nothing.
TEST(Synonyms, NamesOfOtherTrainers) {
  EXPECT_THAT(advice_for_key("tf_random_seed", "the configuration", Words{"seed"}), HasSubstr("'seed'"));
  EXPECT_THAT(advice_for_key("TF_CONFIG", "the configuration", Words{"seed"}), HasSubstr("mpirun"));
  EXPECT_THAT(advice_for_key("save_summary_steps", "section summary", Words{"every_steps"}),
              HasSubstr("'every_steps'"));
  EXPECT_THAT(advice_for_name("optimizer", "hvd.DistributedOptimizer", kOptimizers), HasSubstr("inner rule"));
  EXPECT_THAT(advice_for_name("transform", "random_flip_left_right", Words{"random_flip"}),
              HasSubstr("'random_flip'"));
  EXPECT_THAT(advice_for_name("layer", "RandomFlip", Words{"relu"}), StartsWith("Samples are changed by"));
}

TEST(Synonyms, CommandsAndOptionsOfOthers) {
  EXPECT_THAT(advice_for_command_line("fit"), HasSubstr("lockstep train"));
  EXPECT_THAT(advice_for_command_line("--model_dir"), HasSubstr("--run-dir"));
  EXPECT_EQ(advice_for_command_line("--run-dir"), "");
  EXPECT_THAT(advice_for_command_line("--checkpoint"), HasSubstr("warm_start.checkpoint"));
  EXPECT_THAT(advice_for_command_line("--num-workers"), HasSubstr("--threads"));
  EXPECT_THAT(advice_for_command_line("--dry_run"), HasSubstr("lockstep check"));
  EXPECT_THAT(advice_for_command_line("init"), HasSubstr("lockstep new"));
}

TEST(Synonyms, TyposGetTheNearestName) {
  EXPECT_THAT(advice_for_name("optimizer", "adma", kOptimizers), StartsWith("Did you mean 'adam'?"));
  EXPECT_EQ(advice_for_choice("padding", "xxxxxx", Words{"same", "valid"}, "help"), "help");
}

TEST(Synonyms, ANameIsUsedOnlyWhereItExists) {
  EXPECT_THAT(advice_for_key("kernel_size", "layer conv2d", Words{"filters", "kernel"}),
              HasSubstr("'kernel'"));
  EXPECT_THAT(advice_for_key("kernel_size", "layer max_pool", Words{"window"}), HasSubstr("'window'"));
  EXPECT_EQ(advice_for_key("kernel_size", "layer relu", {}), "Known keys: none");
}

TEST(Synonyms, LongListsEndAfterTen) {
  const Words twelve{"aa", "bb", "cc", "dd", "ee", "ff", "gg", "hh", "ii", "jj", "kk", "ll"};
  const std::string shown = "aa, bb, cc, dd, ee, ff, gg, hh, ii, jj and 2 more";
  EXPECT_EQ(advice_for_key("zzzzzz", "section train", twelve),
            "Known keys: " + shown + " (see `lockstep explain train`)");
  EXPECT_EQ(advice_for_key("zzzzzz", "section data (train, reader csv)", twelve),
            "Known keys: " + shown + " (see `lockstep explain data` and `lockstep explain csv`)");
  EXPECT_EQ(advice_for_key("zzzzzz", "layer conv2d", twelve),
            "Known keys: " + shown + " (see `lockstep explain conv2d`)");
  EXPECT_EQ(advice_for_name("layer", "zzzzzz", twelve), "Known: " + shown + " (see `lockstep explain`).");
}

TEST(Synonyms, TheTableIsInPlainForm) {
  EXPECT_GT(all_synonyms().size(), 1500U);
  for (const Synonym& synonym : all_synonyms()) {
    EXPECT_EQ(synonym.word.find_first_of("_-. ABCDEFGHIJKLMNOPQRSTUVWXYZ"), std::string_view::npos)
        << synonym.word;
    EXPECT_FALSE(synonym.name.empty() && synonym.advice.empty()) << synonym.word;
  }
}

// After a line for the same place and word that names the same, or names nothing, another is never used.
TEST(Synonyms, NoLineHidesAnother) {
  std::map<std::pair<std::string_view, std::string_view>, std::set<std::string_view>> above;
  for (const Synonym& synonym : all_synonyms()) {
    std::set<std::string_view>& names = above[{synonym.place, synonym.word}];
    EXPECT_FALSE(names.contains("")) << "[" << synonym.place << "] " << synonym.word;
    EXPECT_TRUE(names.insert(synonym.name).second) << "[" << synonym.place << "] " << synonym.word;
  }
}

TEST(SynonymFile, EachFormOfALineIsRead) {
  const SynonymTable table = parse_synonyms(
      "# comment\n@both: Do this,\n    or: that.\n[key of x]\nlr rate\n  step -> learning_rate\n\n"
      "cuda:0 -> cuda: with a -> b.\nold: @both\n[loss]\nmse -> mean_squared_error");
  const auto has = [](const Synonym& synonym, std::string_view place, std::string_view word,
                      std::string_view name, std::string_view advice) {
    return synonym.place == place && synonym.word == word && synonym.name == name && synonym.advice == advice;
  };
  ASSERT_EQ(table.synonyms.size(), 6U);
  EXPECT_TRUE(has(table.synonyms[0], "key of x", "lr", "learning_rate", ""));
  EXPECT_TRUE(has(table.synonyms[2], "key of x", "step", "learning_rate", ""));
  EXPECT_TRUE(has(table.synonyms[3], "key of x", "cuda:0", "cuda", "with a -> b."));
  EXPECT_TRUE(has(table.synonyms[4], "key of x", "old", "", "Do this, or: that."));
  EXPECT_TRUE(has(table.synonyms[5], "loss", "mse", "mean_squared_error", ""));
}

TEST(SynonymFile, BrokenLinesAreReportedWithTheirNumbers) {
  const auto message = [](std::string_view text) {
    return testing::message_of([&] { parse_synonyms(text); }, ErrorKind::bug);
  };
  EXPECT_THAT(message("[loss]\nmse mean_squared_error\n"), HasSubstr("synonyms.txt:2: it is neither"));
  EXPECT_THAT(message("[loss]\n\nmse ->\n"), HasSubstr("synonyms.txt:3: it is neither"));
  EXPECT_THAT(message("mse -> mean_squared_error\n"), HasSubstr("synonyms.txt:1: a [PLACE] must come first"));
  EXPECT_THAT(message("[loss\n"), HasSubstr("synonyms.txt:1: a place is"));
  EXPECT_THAT(message("[loss]\nMSE -> mean_squared_error\n"), HasSubstr("synonyms.txt:2: a word has lower"));
  EXPECT_THAT(message("[loss]\nmse  l2 -> mean_squared_error\n"), HasSubstr("synonyms.txt:2: a word has"));
  EXPECT_THAT(message("[loss]\nmse -> squared error\n"), HasSubstr("synonyms.txt:2: a name has no blanks"));
  EXPECT_THAT(message("[loss]\nmse: @absent\n"), HasSubstr("synonyms.txt:2: the label is not defined"));
  EXPECT_THAT(message("@a: A.\n@a: B.\n"), HasSubstr("synonyms.txt:2: the label stands above"));
  EXPECT_THAT(message("    more\n"), HasSubstr("continues nothing"));
}

}  // namespace
}  // namespace lockstep
