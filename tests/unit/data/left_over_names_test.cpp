// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/left_over_names.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(LeftOverNames, AreThoseOfOtherPrograms) {
  for (const char* const name : {".DS_Store", "._x.png", ".ipynb_checkpoints", "__MACOSX", "Thumbs.db"})
    EXPECT_TRUE(is_left_over(name)) << name;
  for (const char* const name : {"a.png", "_private", "thumbs", "__init__"})
    EXPECT_FALSE(is_left_over(name)) << name;
}

}  // namespace
}  // namespace lockstep
