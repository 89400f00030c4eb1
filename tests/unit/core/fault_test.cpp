// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "core/fault.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "core/error.h"

namespace lockstep {
namespace {

TEST(Fault, ParsesStepRankAndKind) {
  EXPECT_TRUE(parse_faults("").empty());
  const std::vector<Fault> faults = parse_faults("12:3:kill,0:0:ENOSPC");
  ASSERT_EQ(faults.size(), 2U);
  EXPECT_EQ(faults[0].step, 12);
  EXPECT_EQ(faults[0].rank, 3);
  EXPECT_EQ(faults[0].kind, "kill");
  EXPECT_EQ(faults[1].kind, "ENOSPC");
  for (const char* text : {"kill", "1:kill", "1:2:kil", "x:0:kill", "-1:0:kill", "1:-1:kill", "1:0:kill,",
                           ",", "1:0:kill:3", "1::kill"}) {
    if (std::string_view(text) == "1:0:kill,") {
      EXPECT_EQ(parse_faults(text).size(), 1U);
      continue;
    }
    try {
      parse_faults(text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      EXPECT_THAT(error.what(), ::testing::AllOf(::testing::HasSubstr("LOCKSTEP_FAULT"),
                                                 ::testing::HasSubstr("kill_before_rename")));
    }
  }
}

// A single test, because the environment is read once per process.
TEST(Fault, HappensOnceOnItsRankFromItsStep) {
  ASSERT_EQ(::setenv("LOCKSTEP_FAULT", "5:2:sleep,7:2:sleep,9:2:EIO,0:1:kill", 1), 0);
  set_fault_step(100);
  EXPECT_FALSE(fault_is("sleep")) << "on rank 0";
  set_fault_rank(2);
  set_fault_step(4);
  EXPECT_FALSE(fault_is("sleep")) << "before its step";
  set_fault_step(6);
  EXPECT_FALSE(fault_is("stop")) << "another kind";
  EXPECT_TRUE(fault_is("sleep"));
  EXPECT_FALSE(fault_is("sleep")) << "twice";
  set_fault_step(7);
  EXPECT_TRUE(fault_is("sleep")) << "the second of the same kind";
  set_fault_step(20);
  fault_kill("kill");  // the fault of another rank
  {
    const FaultStep older(8);
    EXPECT_TRUE(FaultStep::present());
    EXPECT_FALSE(fault_is("EIO")) << "this thread is at an older step";
  }
  EXPECT_FALSE(FaultStep::present());
  EXPECT_TRUE(fault_is("EIO"));
  EXPECT_THROW(fault_is("unheard-of"), Error);
}

}  // namespace
}  // namespace lockstep
