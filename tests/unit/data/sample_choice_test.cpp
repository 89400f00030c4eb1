// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/sample_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "data/choice_options.h"
#include "support/error_support.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::message_of;
using Numbers = std::vector<std::int64_t>;

/// Options as they stand in a configuration: name, value.
using Written = std::vector<std::pair<std::string, std::string>>;

ChoiceOptions options_of(const Written& written, bool evaluation = false) {
  Node node;
  node.kind = Node::Kind::map;
  for (const auto& [name, value] : written) {
    Node item = Node::scalar(value, "c.yaml:1:1");
    if (value.front() == '[') {
      item = Node();
      item.kind = Node::Kind::list;
      item.where = "c.yaml:1:1";
      const auto comma = value.find(',');
      item.items = {Node::scalar(value.substr(1, comma - 1)),
                    Node::scalar(value.substr(comma + 2, value.size() - comma - 3))};
    }
    node.entries.emplace_back(name, item);
  }
  return choice_options(Params(node, choice_table(), "section data"), evaluation);
}

Numbers chosen(const Written& written, std::int64_t samples, bool evaluation = false) {
  const auto choice = choose_samples(options_of(written, evaluation), evaluation, samples);
  Numbers all(static_cast<std::size_t>(choice != nullptr ? choice->size() : samples));
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i] = choice != nullptr ? choice->at(static_cast<std::int64_t>(i)) : static_cast<std::int64_t>(i);
  return all;
}

/// The sets are disjoint, and together they are 0 to samples - 1.
void expect_partition(const std::vector<Numbers>& sets, std::int64_t samples, const std::string& what) {
  Numbers all;
  for (const Numbers& set : sets) all.insert(all.end(), set.begin(), set.end());
  std::ranges::sort(all);
  ASSERT_EQ(std::ssize(all), samples) << what;
  for (std::int64_t i = 0; i < samples; ++i) ASSERT_EQ(all[static_cast<std::size_t>(i)], i) << what;
}

TEST(SampleChoice, PartsWithTheSameSeedAndUnitDivideTheSet) {
  for (const std::int64_t samples : {40, 64, 97, 1000, 1797})
    for (const char* unit : {"1", "3", "8"})
      for (const char* seed : {"0", "7"}) {
        const Written common = {{"split_seed", seed}, {"split_unit", unit}};
        const auto with = [&](const Written& own) {
          Written all = common;
          all.insert(all.end(), own.begin(), own.end());
          return all;
        };
        const std::string what = std::to_string(samples) + " samples, unit " + unit + ", seed " + seed;
        const auto share = [&](const char* part) { return chosen(with({{"random_split", part}}), samples); };
        expect_partition({share("[0, 0.5]"), share("[0.5, 0.75]"), share("[0.75, 1]")}, samples, what);
        const Written holdout = with({{"holdout", "0.3"}});
        expect_partition({chosen(holdout, samples), chosen(holdout, samples, true)}, samples, what);
        std::vector<Numbers> folds;
        for (const char* fold : {"0", "1", "2"}) {
          const Written of_fold = with({{"folds", "3"}, {"fold", fold}});
          folds.push_back(chosen(of_fold, samples, true));
          expect_partition({chosen(of_fold, samples), folds.back()}, samples, what);
        }
        expect_partition(folds, samples, what);
      }
}

TEST(SampleChoice, PartsAreRandomAndDependOnTheSeed) {
  const Numbers part = chosen({{"random_split", "[0, 0.5]"}, {"split_seed", "1"}}, 10000);
  EXPECT_NE(part, chosen({{"random_split", "[0, 0.5]"}, {"split_seed", "2"}}, 10000));
  // Hypergeometric: of 1,000 samples 500 are expected, with a standard deviation of 15.
  for (int thousand = 0; thousand < 10; ++thousand)
    EXPECT_NEAR(std::ranges::count(part, thousand, [](std::int64_t i) { return i / 1000; }), 500, 90);
}

// Which samples a seed chooses must not change between versions: results are compared.
TEST(SampleChoice, ThePartOfASeedIsPinned) {
  EXPECT_THAT(chosen({{"holdout", "0.01"}, {"split_seed", "42"}}, 800, true),
              ElementsAre(200, 559, 277, 314, 190, 253, 449, 413));
}

TEST(SampleChoice, ByClassEachPartHasItsShareOfEachClass) {
  std::vector<std::int32_t> labels(1000);
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = i % 10 == 0 ? 1 : 0;  // 100 of 1,000
  std::vector<Numbers> folds(5);
  for (std::size_t fold = 0; fold < 5; ++fold) {
    const ChoiceOptions options =
        options_of({{"folds", "5"}, {"fold", std::to_string(fold)}, {"split_by_class", "true"}}, true);
    const auto choice = choose_samples(options, true, 1000, labels);
    for (std::int64_t i = 0; i < choice->size(); ++i) folds[fold].push_back(choice->at(i));
    EXPECT_EQ(std::ranges::count_if(folds[fold], [](std::int64_t i) { return i % 10 == 0; }), 20);
  }
  expect_partition(folds, 1000, "by class");
}

TEST(SampleChoice, UnitsStayTogether) {
  const Numbers part = chosen({{"folds", "5"}, {"fold", "2"}, {"split_unit", "10"}}, 1003, true);
  const std::set<std::int64_t> set(part.begin(), part.end());
  for (const std::int64_t sample : part)
    for (std::int64_t i = sample / 10 * 10; i < std::min<std::int64_t>(sample / 10 * 10 + 10, 1003); ++i)
      EXPECT_TRUE(set.contains(i)) << sample;
}

TEST(SampleChoice, SkipAndTakeCountInTheOrderOfThePart) {
  EXPECT_THAT(chosen({{"skip", "3"}, {"take", "4"}}, 10), ElementsAre(3, 4, 5, 6));
  const Numbers whole = chosen({{"random_split", "[0, 1]"}}, 50),
                some = chosen({{"random_split", "[0, 1]"}, {"skip", "5"}, {"take", "20"}}, 50);
  EXPECT_EQ(some, Numbers(whole.begin() + 5, whole.begin() + 25));
}

TEST(SampleChoice, BillionsOfSamplesNeedNoTable) {
  const std::int64_t samples = std::int64_t{7} << 40;
  const auto choice =
      choose_samples(options_of({{"holdout", "0.25"}, {"split_unit", "1000"}}), false, samples);
  EXPECT_NEAR(static_cast<double>(choice->size()), 0.75 * static_cast<double>(samples), 1000);
  std::set<std::int64_t> seen;
  for (std::int64_t i = 0; i < 1000; ++i) {
    const std::int64_t sample = choice->at(choice->size() - 1 - i * 5000000000);
    ASSERT_TRUE(sample >= 0 && sample < samples);
    seen.insert(sample);
  }
  EXPECT_EQ(seen.size(), 1000U);
}

TEST(SampleChoice, BlocksOfARangeAreThoseOfTheFile) {
  const BlockGrid file({{0, 6}, {8, 0}}, 13, 4);  // blocks begin at 0, 2, 6, 8, 12
  const SampleChoice choice({.num_samples = 13, .skip = 3, .take = 9});
  const BlockGrid blocks = choice.blocks(file);
  Numbers starts;
  for (std::int64_t block = 0; block < blocks.num_blocks(); ++block)
    starts.push_back(blocks.samples(block).first + 3);
  EXPECT_THAT(starts, ElementsAre(3, 6, 8));
  EXPECT_EQ(blocks.num_samples(), 9);
}

TEST(SampleChoice, MistakesAreNamed) {
  const auto message = [](const Written& written, bool evaluation = false) {
    return message_of([&] { chosen(written, 100, evaluation); });
  };
  EXPECT_THAT(message({{"take", "101"}}),
              AllOf(HasSubstr("take"), HasSubstr("101 samples are to be taken, but there are 100")));
  EXPECT_THAT(message({{"skip", "100"}}), HasSubstr("skip"));
  EXPECT_THAT(message({{"random_split", "[0.9, 0.1]"}}), HasSubstr("0 <= first < last <= 1"));
  EXPECT_THAT(message({{"random_split", "[0, 0.001]"}}), HasSubstr("no sample is left: 0 of 100 are chosen"));
  EXPECT_THAT(message({{"holdout", "0.5"}, {"folds", "3"}, {"fold", "0"}}), HasSubstr("a second way"));
  EXPECT_THAT(message({{"folds", "3"}}), HasSubstr("without fold"));
  EXPECT_THAT(message({{"fold", "3"}}), HasSubstr("without folds"));
  EXPECT_THAT(message({{"folds", "3"}, {"fold", "3"}}), HasSubstr("3 is none of 3 folds"));
  EXPECT_THAT(message({{"balance", "classes"}}, true), HasSubstr("Write it under data.train"));
  EXPECT_THAT(message({{"holdout", "0.1"}, {"split_by_class", "true"}, {"split_unit", "2"}}),
              HasSubstr("Give one of the two"));
  EXPECT_THAT(message({{"split_seed", "3"}}), HasSubstr("nothing is divided"));
  EXPECT_THAT(message({{"repeat", "2"}}, true), HasSubstr("Write it under data.train"));
}

}  // namespace
}  // namespace lockstep
