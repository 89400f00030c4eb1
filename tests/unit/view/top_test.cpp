// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The picture of `lockstep top` fits into every terminal.
#include "view/top/top_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace lockstep {
namespace {

TopState state_of(int ranks) {
  TopState state{.run_dir = "runs/a", .state = "running: step 5", .now = 1000};
  state.jobs.resize(2);
  state.jobs[0] = {.state = "requeue", .reason = "TERM", .host = "n01", .ranks = 2, .begin = 1, .end = 50};
  state.jobs[1] = {.state = "running", .host = "n01", .ranks = ranks, .begin = 900};
  state.progress = {.state = RunState::running, .jobs = 2, .step = 5, .total_steps = 10, .left_seconds = 5};
  state.ranks.emplace();
  for (int rank = 0; rank < ranks; ++rank)
    state.ranks->ranks.push_back({"n01", {0.01, 0.008 + 1e-5 * rank, 0.002, 0.001, 1e9}});
  state.loss = NAN;
  state.speeds = {1, NAN, 3};
  state.evaluation = {{"loss", 0.5}};
  return state;
}

TEST(TopView, FitsIntoEveryTerminal) {
  for (const int ranks : {1, 3, 500})
    for (const int width : {20, 33, 59, 60, 80, 250})
      for (const int height : {1, 5, 12, 24, 60})
        for (const bool unicode : {false, true}) {
          const TextStyle style{.width = width, .height = height, .unicode = unicode};
          const std::vector<std::string> lines = top_lines(state_of(ranks), style, true);
          EXPECT_LE(std::ssize(lines), height);
          for (const std::string& line : lines) EXPECT_LE(columns_of(line), width) << line;
        }
}

TEST(TopView, TheLastLineIsAboutTheRanksThatAreNotShown) {
  for (const int height : {12, 24, 60})
    EXPECT_THAT(top_lines(state_of(500), {.width = 80, .height = height}, true).back(),
                ::testing::HasSubstr(" faster ranks: work 8.00 ms to "));
}

TEST(TopView, AllRanksWhereNothingLimitsTheHeight) {
  EXPECT_GT(top_lines(state_of(500), {.width = 80, .height = 24}, false).size(), 500u);
}

TEST(TopView, NarrowPicturesHaveAllShares) {
  EXPECT_THAT(top_lines(state_of(2), {.width = 40, .height = 24}, true),
              ::testing::Contains("time   compute 70%  comm 20%  input 10%"));
}

TEST(TopView, SaysWhatIsNotThereYet) {
  TopState state = state_of(2);
  state.ranks.reset();
  EXPECT_THAT(top_lines(state, {.width = 80, .height = 24}, true),
              ::testing::Contains(::testing::HasSubstr("no times of ranks yet")));
}

}  // namespace
}  // namespace lockstep
