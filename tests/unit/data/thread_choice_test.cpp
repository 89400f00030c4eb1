// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/thread_choice.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(ThreadChoice, OneThreadWhereNothingWaits) {
  ThreadChoice choice(8);
  for (int i = 0; i < 100; ++i) choice.window(ThreadChoice::kMostWaiting);
  EXPECT_EQ(choice.threads(), 1);
}

/// Reading takes the time of three threads: what is missing is waited for.
TEST(ThreadChoice, AsManyThreadsAsReadingNeeds) {
  ThreadChoice choice(8);
  for (int i = 0; i < 20; ++i) choice.window(choice.threads() >= 3 ? 0.0 : 1.0 - choice.threads() / 3.0);
  EXPECT_EQ(choice.threads(), 3);
}

TEST(ThreadChoice, NeverMoreThanTheMost) {
  ThreadChoice choice(4);
  for (int i = 0; i < 200; ++i) {
    choice.window(1.0 / (1 + choice.threads()));
    EXPECT_LE(choice.threads(), 4);
  }
  EXPECT_EQ(choice.threads(), 4);
}

/// A disk that gives no more to two threads than to one.
TEST(ThreadChoice, AThreadThatDoesNotHelpIsTakenBack) {
  ThreadChoice choice(8);
  int tries = 0;
  for (int i = 0; i < 3 * (ThreadChoice::kRest + 1); ++i) {
    choice.window(0.5);
    EXPECT_LE(choice.threads(), 2);
    tries += choice.threads() == 2 ? 1 : 0;
  }
  EXPECT_EQ(choice.threads(), 1);
  EXPECT_EQ(tries, 3);  // now and then again
}

}  // namespace
}  // namespace lockstep
