// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The parts of a sweep that need no ranks: which trials there are, which go on, and how they are written.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <set>

#include "config/yaml_node.h"
#include "core/error.h"
#include "tools/sweep/sobol.h"
#include "tools/sweep/sweep_files.h"
#include "tools/sweep/sweep_plan.h"
#include "tools/sweep/sweep_run.h"
#include "tools/sweep/sweep_table.h"
#include "view/report/parallel_coordinates.h"

namespace lockstep {
namespace {

SweepOptions options_of(const std::string& yaml) {
  return sweep_options(Params(parse_yaml(yaml, "sweep"), sweep_table(), "section sweep"));
}

std::string message_of(const std::string& yaml) {
  try {
    options_of(yaml);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::config);
    return error.what();
  }
  return {};
}

TrialRecord record_of(std::initializer_list<double> values, std::string error = {}) {
  TrialRecord record{.error = std::move(error)};
  for (const double value : values) record.results.push_back({10, value, "d"});
  return record;
}

TEST(SweepTrials, GridHasAllCombinationsAndTheLastKeyChangesFastest) {
  const auto trials =
      trials_of(options_of("keys: {a: [1, x], b.c: {min: 0.001, max: 0.1, scale: log, points: 3}}"));
  ASSERT_EQ(trials.size(), 6U);
  EXPECT_EQ(trials[0], (std::vector<KeySetting>{{"a", "1"}, {"b.c", "0.001"}}));
  EXPECT_EQ(trials[1], (std::vector<KeySetting>{{"a", "1"}, {"b.c", "0.01"}}));
  EXPECT_EQ(trials[5], (std::vector<KeySetting>{{"a", "x"}, {"b.c", "0.1"}}));
  EXPECT_EQ(keys_of(trials), (std::vector<std::string>{"a", "b.c"}));
}

TEST(SweepTrials, GridOfWholeNumbersHasNoValueTwice) {
  const auto trials = trials_of(options_of("keys: {a: {min: 1, max: 3, type: integer, points: 9}}"));
  ASSERT_EQ(trials.size(), 3U);
  EXPECT_EQ(trials[1][0].value, "2");
}

TEST(SweepTrials, RandomNumbersStayInRangeAndDoNotDependOnOtherKeys) {
  const auto one = trials_of(options_of(
      "{method: random, trials: 200, seed: 5, keys: {x: {min: 1e-4, max: 1, scale: log}, n: {min: 2, max: 5, "
      "type: integer}}}"));
  const auto other = trials_of(
      options_of("{method: random, trials: 200, seed: 5, keys: {n: {min: 2, max: 5, type: integer}}}"));
  const auto third = trials_of(
      options_of("{method: random, trials: 200, seed: 6, keys: {n: {min: 2, max: 5, type: integer}}}"));
  std::set<std::string> whole, thirds;
  int below = 0;
  for (std::size_t i = 0; i < 200; ++i) {
    const double x = std::atof(one[i][0].value.c_str());
    EXPECT_GE(x, 1e-4);
    EXPECT_LE(x, 1);
    below += x < 1e-2 ? 1 : 0;  // half of the logarithms
    whole.insert(one[i][1].value);
    EXPECT_EQ(one[i][1], other[i][0]);
  }
  EXPECT_GT(below, 75);
  EXPECT_LT(below, 125);
  EXPECT_EQ(whole, (std::set<std::string>{"2", "3", "4", "5"}));
  EXPECT_NE(other, third);
}

// scipy.stats.qmc.Sobol(d=21, scramble=False, bits=32).random(16): points 1, 2, 3, 5 and 11 of the binary
// order.
TEST(SweepTrials, SobolIsThatOfJoeAndKuo) {
  constexpr std::uint32_t kPoints[] = {1, 2, 3, 5, 11};
  const std::pair<std::size_t, std::vector<std::uint32_t>> expected[] = {
      {1, {2147483648, 3221225472, 1073741824, 536870912, 2952790016}},
      {2, {2147483648, 3221225472, 1073741824, 3758096384, 3489660928}},
      {7, {2147483648, 1073741824, 3221225472, 536870912, 2415919104}},
      {13, {2147483648, 3221225472, 1073741824, 3758096384, 3489660928}},
      {19, {2147483648, 3221225472, 1073741824, 1610612736, 4026531840}},
      {20, {2147483648, 3221225472, 1073741824, 1610612736, 2415919104}},
  };
  for (const auto& [dimension, words] : expected)
    for (std::size_t i = 0; i < 5; ++i)
      EXPECT_EQ(sobol_word(kPoints[i], dimension), words[i]) << dimension << ' ' << i;
}

// 64 points of a two-dimensional (0, 2)-sequence: one in each cell of an 8 x 8 grid, whatever the shift.
TEST(SweepTrials, SobolFillsEachCellOnce) {
  const auto trials = trials_of(
      options_of("{method: sobol, trials: 64, seed: 3, keys: {x: {min: 0, max: 8}, y: {min: 0, max: 8}}}"));
  std::set<std::pair<int, int>> cells;
  for (const auto& trial : trials)
    cells.emplace(std::atoi(trial[0].value.c_str()), std::atoi(trial[1].value.c_str()));
  EXPECT_EQ(cells.size(), 64U);
}

TEST(SweepOptionsTest, MistakesAreNamed) {
  EXPECT_NE(message_of("{}").find("names no keys"), std::string::npos);
  EXPECT_NE(message_of("keys: {a: {min: 1, max: 2}}").find("how many values"), std::string::npos);
  EXPECT_NE(message_of("{method: random, keys: {a: [1]}}").find("needs the number of trials"),
            std::string::npos);
  EXPECT_NE(message_of("{method: random, trials: 2, keys: {a: {min: 2, max: 1}}}").find("not above min"),
            std::string::npos);
  EXPECT_NE(
      message_of("{method: random, trials: 2, keys: {a: {min: 0, max: 1, scale: log}}}").find("no logarithm"),
      std::string::npos);
  EXPECT_NE(message_of("{method: list, list: [3]}").find("is no map"), std::string::npos);
  EXPECT_NE(message_of("{trials: 4, keys: {a: [1]}}").find("no effect with method grid"), std::string::npos);
  EXPECT_NE(message_of("{keys: {a: [1]}, halving: {factor: 3}}").find("first"), std::string::npos);
  EXPECT_EQ(message_of("keys: {a: [1]}"), "");
}

TEST(SweepRungs, EndAndShrinkByTheFactorAndOneTrialTrainsToTheEnd) {
  SweepOptions options{.first = 1, .factor = 3};
  EXPECT_EQ(rungs_of(options, 9, 9), (std::vector<Rung>{{1, 9}, {3, 3}, {std::nullopt, 1}}));
  EXPECT_EQ(rungs_of(options, 9, 100), (std::vector<Rung>{{1, 9}, {3, 3}, {std::nullopt, 1}}));
  EXPECT_EQ(rungs_of(options, 30, 9), (std::vector<Rung>{{1, 30}, {3, 10}, {std::nullopt, 3}}));
  options.first = 20;
  EXPECT_EQ(rungs_of(options, 9, 20), (std::vector<Rung>{{std::nullopt, 9}}));
  options.first.reset();
  EXPECT_EQ(rungs_of(options, 9, 9), (std::vector<Rung>{{std::nullopt, 9}}));
}

TEST(SweepRungs, TheBestGoOnAndOfEqualOnesTheFirst) {
  const std::vector<Rung> rungs{{1, 5}, {std::nullopt, 2}};
  const std::vector<TrialRecord> records{record_of({2}), record_of({1}), record_of({}, "NaN"), record_of({1}),
                                         record_of({1})};
  EXPECT_EQ(members_of(records, rungs, 0, false), (std::vector<std::size_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(members_of(records, rungs, 1, false), (std::vector<std::size_t>{1, 3}));
  EXPECT_EQ(members_of(records, rungs, 1, true), (std::vector<std::size_t>{0, 1}));
}

TEST(SweepRungs, TheBestTrialIsOneThatCameFurthest) {
  EXPECT_EQ(
      best_trial({record_of({9}), record_of({1, 5}), record_of({2, 6}), record_of({3, 9}, "failed")}, true),
      2U);
  EXPECT_EQ(best_trial({record_of({}, "a"), record_of({}, "b")}, true), std::nullopt);
}

TEST(SweepGroups, AreConsecutiveAndEven) {
  for (int ranks = 1; ranks <= 9; ++ranks)
    for (int groups = 1; groups <= ranks; ++groups) {
      std::vector<int> sizes(static_cast<std::size_t>(groups));
      for (int rank = 0, before = 0; rank < ranks; ++rank) {
        const int group = group_of(rank, ranks, groups);
        EXPECT_TRUE(group == before || group == before + 1);
        before = group;
        ++sizes[static_cast<std::size_t>(group)];
      }
      for (const int size : sizes) EXPECT_TRUE(size == ranks / groups || size == ranks / groups + 1);
    }
}

TEST(SweepFiles, RecordsComeBackAsTheyWere) {
  std::map<std::size_t, TrialRecord> records{{3, record_of({0.1, 1.0 / 3})},
                                             {12, record_of({}, "a \"b\"\nc")}};
  EXPECT_EQ(parse_records(to_text(records)), records);
}

TEST(SweepPicture, NumbersHaveScalesAndNamesHavePlaces) {
  const std::string svg = report::parallel_coordinates(
      {{.name = "rate", .values = {"0.001", "0.1", ""}},
       {.name = "<layer>", .values = {"relu", "tanh", "relu"}},
       {.name = "loss", .values = {"1", "3", "2"}, .is_result = true, .smaller_is_better = true}},
      {{.label = "trial 0", .goodness = 1, .is_best = true},
       {.label = "trial 1"},
       {.label = "trial 2", .is_dashed = true}});
  EXPECT_NE(svg.find("&lt;layer&gt;"), std::string::npos);
  EXPECT_NE(svg.find(">0.01<"), std::string::npos);  // a tick of the logarithmic scale
  EXPECT_NE(svg.find(">tanh<"), std::string::npos);
  EXPECT_NE(svg.find("stroke-dasharray"), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
}

TEST(SweepPicture, ChoicesAreTheTicksOfTheirAxis) {
  const std::string svg = report::parallel_coordinates(
      {{.name = "filters", .values = {"8", "16", "32", "16"}},
       {.name = "accuracy", .values = {"0.1", "0.3", "0.3", "0.2"}, .is_result = true}},
      {{.label = "0"}, {.label = "1"}, {.label = "2", .is_best = true}, {.label = "3"}});
  for (const char* tick : {">8<", ">16<", ">32<", ">0.15<"})
    EXPECT_NE(svg.find(tick), std::string::npos) << tick;
  for (const char* tick : {">10<", ">20<"}) EXPECT_EQ(svg.find(tick), std::string::npos) << tick;
}

}  // namespace
}  // namespace lockstep
