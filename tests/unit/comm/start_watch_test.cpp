// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What a start that takes long says, and when.
#include "comm/start_watch.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace lockstep {
namespace {

/// The messages of a watch that exists for `seconds`.
std::vector<std::string> messages(StartWatch::Options options, double seconds) {
  std::vector<std::string> said;  // by the watch's thread, which has ended when they are read
  {
    const auto say = [&](const std::string& message) { said.push_back(message); };
    StartWatch watch(std::move(options), say, say);
    watch.set_phase("MPI_Init_thread");
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  }
  return said;
}

TEST(StartWatch, AShortStartSaysNothing) {
  EXPECT_TRUE(messages({.limit_seconds = 30, .notice_seconds = 20, .who = "rank 0"}, 0.01).empty());
}

TEST(StartWatch, TheNoticeNamesThePhaseAndTheLimit) {
  const auto said = messages({.limit_seconds = 300, .notice_seconds = 0.02, .who = "rank 0 on host a"}, 0.3);
  ASSERT_EQ(said.size(), 1U);
  EXPECT_EQ(
      said[0],
      "warning: rank 0 on host a has waited 0 s in 'MPI_Init_thread' while the run starts: another rank is "
      "slow, is stopped, or was not started; the run ends after 300 s (comm.start_timeout_seconds)\n");
}

TEST(StartWatch, WithoutALimitTheNoticeSaysSo) {
  const auto said = messages({.limit_seconds = 0, .notice_seconds = 0.02, .who = "rank 0"}, 0.3);
  ASSERT_EQ(said.size(), 1U);
  EXPECT_NE(said[0].find("this may take any time (comm.start_timeout_seconds: 0)"), std::string::npos)
      << said[0];
}

TEST(StartWatch, TheLimitFollowsTheNotice) {
  const auto said = messages({.limit_seconds = 0.1, .notice_seconds = 0.02, .who = "rank 0"}, 0.5);
  ASSERT_EQ(said.size(), 2U);
  EXPECT_EQ(said[0].rfind("warning: ", 0), 0U) << said[0];
  EXPECT_EQ(said[1].rfind("error: ", 0), 0U) << said[1];
}

TEST(StartWatch, ALimitBeforeTheNoticeNeedsNone) {
  const auto said = messages({.limit_seconds = 0.02, .notice_seconds = 10, .who = "rank 0"}, 0.3);
  ASSERT_EQ(said.size(), 1U);
  EXPECT_EQ(said[0].rfind("error: ", 0), 0U) << said[0];
}

}  // namespace
}  // namespace lockstep
