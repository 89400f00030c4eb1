// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/program.h"

#include <gmock/gmock.h>

#include <cstdlib>

#include "core/version.h"
#include "driver/commands/info.h"
#include "support/error_support.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;
using ::testing::internal::CaptureStderr;
using ::testing::internal::CaptureStdout;
using ::testing::internal::GetCapturedStderr;
using ::testing::internal::GetCapturedStdout;

struct Outcome {
  int code;
  std::string out, err;
};

Outcome run(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "lockstep");
  CaptureStdout();
  CaptureStderr();
  const int code = run_program(static_cast<int>(arguments.size()), arguments.data());
  return {code, GetCapturedStdout(), GetCapturedStderr()};
}

TEST(Program, WrongUsageIsSaidOnceAndExitsWithTwo) {
  const Outcome outcome = run({"trian"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, ::testing::StartsWith("error: lockstep: unknown command 'trian'\n"));
}

TEST(Program, OtherRanksStaySilentButExitAlike) {
  setenv("PMIX_RANK", "1", 1);
  setenv("PMIX_NAMESPACE", "job", 1);
  const Outcome outcome = run({"trian"});
  const Outcome help = run({"--help"});
  unsetenv("PMIX_RANK");
  unsetenv("PMIX_NAMESPACE");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err, "");
  EXPECT_EQ(help.code, 0);
  EXPECT_EQ(help.out, "");
}

TEST(Program, RankThatMpirunDoesNotEndHasItsOwnError) {
  setenv("OMPI_COMM_WORLD_RANK", "1", 1);
  setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
  const Outcome outcome = run({"trian"});  // mpirun would have ended it in the meantime
  unsetenv("OMPI_COMM_WORLD_RANK");
  unsetenv("OMPI_COMM_WORLD_SIZE");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, ::testing::StartsWith("error: rank 1: lockstep: unknown command 'trian'\n"));
}

TEST(Program, HelpGoesToStandardOutput) {
  const Outcome outcome = run({"train", "--help"});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.out, HasSubstr("--run-dir"));
  EXPECT_EQ(outcome.err, "");
}

TEST(Program, ReferenceAndInfo) {
  const std::string reference = run({"config-reference"}).out;
  for (const char* text :
       {"# Configuration reference", "\n## Section data\n", "| `format` |", "\n## Reader csv\n",
        "\n## Section model\n", "\n## Every layer\n", "\n## Layer conv2d\n", "\n## Initializer he_normal\n",
        "\n## Loss softmax_cross_entropy\n", "\n## Optimizer adam\n", "\n## Schedule exponential_decay\n"})
    EXPECT_THAT(reference, HasSubstr(text));
  const Outcome info = run({"info"});
  EXPECT_EQ(info.code, 0);
  for (const char* row : {"\nMPI  ", "\nprimitives  ", "\nHDF5  ", "\ninstruction set  ", "\ncores  ",
                          "\nmemory  ", "\ndevices  "})
    EXPECT_THAT(info.out, HasSubstr(row));
  EXPECT_THAT(info.out, HasSubstr(std::string(kVersion)));
}

TEST(Info, RowsAreAligned) {
  const std::vector<InfoRow> rows{{"a", "1"}, {"longer", "2"}};
  EXPECT_EQ(info_text(rows), "a       1\nlonger  2\n");
}

}  // namespace
}  // namespace lockstep
