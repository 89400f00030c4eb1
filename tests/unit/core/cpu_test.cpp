// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "core/cpu.h"

#include <gmock/gmock.h>
#include <sched.h>

#include <array>
#include <cstdlib>

#include "core/error.h"
#include "support/error_support.h"

namespace lockstep {
namespace {

TEST(Cpu, ReportsTheMachine) {
  EXPECT_GE(available_cores(), 1);
  EXPECT_FALSE(host_name().empty());
  EXPECT_FALSE(processor_name().empty());
  EXPECT_GT(peak_resident_bytes(), std::size_t{1} << 20);
  EXPECT_GT(physical_memory_bytes(), peak_resident_bytes());
}

TEST(Cpu, CoresFollowTheAffinityMask) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &before)) {
      CPU_SET(core, &one);
      break;
    }
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(available_cores(), 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
  EXPECT_EQ(available_cores(), CPU_COUNT(&before));
}

// isa_level() caches its first result, so each case runs in its own process.
TEST(CpuDeathTest, EnvironmentLimitsTheIsaLevel) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        setenv("LOCKSTEP_ISA", "baseline", 1);
        std::exit(isa_level() == IsaLevel::baseline ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(
      {
        setenv("LOCKSTEP_ISA", "sse9", 1);
        try {
          isa_level();
        } catch (const Error& error) {
          std::exit(error.kind() == ErrorKind::config ? 7 : 1);
        }
        std::exit(1);
      },
      ::testing::ExitedWithCode(7), "");
}

TEST(Cpu, TheLevelIsTheBestThatProcessorCapAndBuildHave) {
  using enum IsaLevel;
  constexpr std::array all{baseline, avx2, avx512};
  EXPECT_EQ(isa_level_of(nullptr, avx512, all), avx512);
  EXPECT_EQ(isa_level_of("", avx2, all), avx2);
  EXPECT_EQ(isa_level_of("avx2", avx512, all), avx2);
  EXPECT_EQ(isa_level_of("avx512", avx2, all), avx2);
  constexpr std::array some{baseline, avx512};
  EXPECT_EQ(isa_level_of(nullptr, avx2, some), baseline);
}

TEST(Cpu, AProgramForBetterProcessorsSaysSo) {
  using enum IsaLevel;
  constexpr std::array one{avx512};
  EXPECT_EQ(isa_level_of(nullptr, avx512, one), avx512);
  EXPECT_THAT(
      testing::message_of([&] { isa_level_of(nullptr, avx2, one); }),
      ::testing::HasSubstr("built for processors with avx512 or better, and this processor has only avx2"));
  EXPECT_THAT(testing::message_of([&] { isa_level_of("avx2", avx512, one); }),
              ::testing::HasSubstr("and LOCKSTEP_ISA allows only avx2"));
}

}  // namespace
}  // namespace lockstep
