// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/state_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;

TEST(StateSettings, DifferencesAreNamed) {
  EXPECT_EQ(
      differences({{"metric", "eval/loss"}, {"window", "5"}}, {{"metric", "eval/loss"}, {"window", "5"}}),
      "");
  EXPECT_EQ(differences({{"metric", "eval/loss"}}, {{"metric", "eval/accuracy"}}),
            "metric was eval/loss and is eval/accuracy");
  EXPECT_EQ(differences({{"a", "1"}}, {{"b", "2"}}), "b is 2 now, a was 1");
}

TEST(StatePieces, ComeBackFromTheirText) {
  StatePieces pieces;
  pieces.add({.name = "average", .settings = {{"kind", "swa"}}, .numbers = {{"updates", 301}}});
  pieces.add({.name = "state/hooks/h/k", .settings = {{"a \"b\"\n", "\t{}"}}});
  pieces.add({.name = "none"});
  const StatePieces again = StatePieces::parse(pieces.text(), "here");
  ASSERT_EQ(again.all().size(), 3U);
  EXPECT_EQ(again.find("average")->numbers.at("updates"), 301);
  EXPECT_EQ(again.find("state/hooks/h/k")->settings, pieces.all()[1].settings);
  EXPECT_TRUE(StatePieces::parse("", "here").empty());
  for (const char* const damaged : {"{", "[1]x", R"({"a": {"settings": {"b": 1}}})"})
    EXPECT_THROW(StatePieces::parse(damaged, "here"), Error) << damaged;
}

TEST(StateReport, KeepsWhatHasItsSettings) {
  StatePieces before;
  before.add({.name = "state/hooks/stop/best", .settings = {{"metric", "eval/loss"}}});
  before.add({.name = "average"});
  StateReport report(before);
  EXPECT_TRUE(report.keeps({.name = "average"}));
  EXPECT_FALSE(report.keeps({.name = "state/hooks/stop/best", .settings = {{"metric", "eval/f1"}}}));
  EXPECT_FALSE(report.keeps({.name = "new"}));
  EXPECT_THAT(lines_of(report.outcomes()),
              ElementsAre("state of average: kept",
                          "state of stop/best: begun anew: metric was eval/loss and is eval/f1",
                          "state of new: begun anew: the checkpoint has none"));
  EXPECT_TRUE(report.outcomes()[1].changed);
  EXPECT_FALSE(report.outcomes()[2].changed);
}

TEST(StateReport, ACheckpointOfAnEarlierVersionIsKept) {
  const StatePieces before;
  StateReport report(before);
  EXPECT_TRUE(report.keeps({.name = "a", .settings = {{"window", "3"}}}));
  report.kept("b");
  EXPECT_THAT(lines_of(report.outcomes()), ElementsAre("state of a, b: kept"));
}

}  // namespace
}  // namespace lockstep
