// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The meaning of the launchers' environment variables; a process without a launcher.
#include "comm/environment.h"

#include <gtest/gtest.h>

#include <map>

#include "comm/watchdog.h"

namespace lockstep {
namespace {

using Variables = std::map<std::string, std::string>;

auto lookup(const Variables& variables) {
  return [&variables](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

bool launched(const Variables& variables) { return started_by_launcher(lookup(variables)); }
std::string warning(const Variables& variables, int ranks) { return start_warning(lookup(variables), ranks); }

TEST(Environment, DetectsLaunchers) {
  EXPECT_FALSE(launched({}));
  EXPECT_FALSE(launched({{"SLURM_NTASKS", "8"}, {"SLURM_PROCID", "0"}}));  // inside salloc, a debugger
  EXPECT_TRUE(launched({{"OMPI_COMM_WORLD_SIZE", "1"}}));
  EXPECT_TRUE(launched({{"PMIX_RANK", "0"}}));
  EXPECT_TRUE(launched({{"PMI_RANK", "3"}}));
}

TEST(Environment, CorrectStartsGiveNoWarning) {
  EXPECT_EQ(warning({}, 1), "");
  EXPECT_EQ(warning({{"SLURM_NTASKS", "8"}, {"SLURM_STEP_NUM_TASKS", "8"}}, 8), "");
  EXPECT_EQ(warning({{"SLURM_NTASKS", "8"}, {"SLURM_STEP_NUM_TASKS", "1"}}, 1), "");  // srun -n 1
  EXPECT_EQ(warning({{"OMPI_COMM_WORLD_SIZE", "4"}, {"SLURM_NTASKS", "8"}}, 4), "");
  EXPECT_EQ(warning({{"SLURM_NTASKS", "1"}}, 1), "");
}

TEST(Environment, WrongStartsGiveAWarning) {
  const std::string expected = "Slurm gave 8 tasks, MPI sees 1: start with srun --mpi=pmix or mpirun";
  EXPECT_EQ(warning({{"SLURM_NTASKS", "8"}, {"SLURM_STEP_NUM_TASKS", "8"}}, 1), expected);
  EXPECT_EQ(warning({{"SLURM_NTASKS", "8"}}, 1), expected);
  EXPECT_NE(warning({{"OMPI_COMM_WORLD_SIZE", "4"}}, 1).find("the launcher started 4 processes, MPI sees 1"),
            std::string::npos);
}

TEST(Environment, SingleProcessWithoutMpi) {
  CommEnvironment environment({.timeout_seconds = 5});
  EXPECT_FALSE(environment.uses_mpi());
  EXPECT_TRUE(environment.thread_multiple());
  EXPECT_STREQ(environment.thread_level(), "none");
  EXPECT_EQ(environment.world().size(), 1);
  EXPECT_EQ(communication_timeout_seconds(), 5);
  for (int step = 0; step < 20; ++step) environment.step_took(100);
  EXPECT_EQ(communication_timeout_seconds(), 5) << "a limit from the user is not changed";
  environment.set_timeout_seconds(0);
  EXPECT_EQ(communication_timeout_seconds(), 0);
  environment.finalize();
}

TEST(Environment, LibraryVersionNeedsNoInit) {
  const std::string version = mpi_library_version();
  EXPECT_FALSE(version.empty());
  for (const char c : version) EXPECT_GE(c, ' ') << "a control character in '" << version << "'";
}

}  // namespace
}  // namespace lockstep
