// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "config/name_choice.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(NameChoice, ABeginningOfAPathCounts) {
  for (const char* const text :
       {"conv1", "conv*", "re:conv[12]", "re:^conv1$", "conv1/kernel", "re:conv1/.*"})
    EXPECT_TRUE(matches_path(NamePattern(text), "conv1/kernel")) << text;
  EXPECT_FALSE(matches_path(NamePattern("conv"), "conv1/kernel"));
  EXPECT_FALSE(matches_path(NamePattern("re:kernel"), "conv1/kernel"));
}

TEST(NameChoice, ALookaheadSeesTheWholePath) {
  const NamePattern all_but_fc("re:(?!fc/).*");
  EXPECT_TRUE(looks_ahead(all_but_fc));
  EXPECT_FALSE(matches_path(all_but_fc, "fc/kernel"));
  EXPECT_TRUE(matches_path(all_but_fc, "conv/kernel"));
  EXPECT_FALSE(matches_path(NamePattern("re:(?!.*bias).*"), "conv/bias"));
  const NamePattern layers_but_fc("re:(?!fc$)[a-z]+");
  EXPECT_FALSE(matches_path(layers_but_fc, "fc/kernel"));
  EXPECT_TRUE(matches_path(layers_but_fc, "conv/kernel"));
  EXPECT_FALSE(looks_ahead(NamePattern("re:conv(1|2)")));
}

}  // namespace
}  // namespace lockstep
