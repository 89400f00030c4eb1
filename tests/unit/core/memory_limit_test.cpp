// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "core/memory_limit.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "core/cpu.h"
#include "core/error.h"

namespace lockstep {
namespace {

class MemoryLimitTest : public testing::Test {
 protected:
  MemoryLimitTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "lockstep-cgroup-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    root_ = pattern;
  }
  ~MemoryLimitTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(root_ + name).parent_path());
    std::ofstream(root_ + name) << text << "\n";
  }
  std::string root_;
};

TEST_F(MemoryLimitTest, TheLowestOfAGroupAndThoseAboveIt) {
  const auto limit = [&] { return cgroup_memory_limit("0::/slurm/job_7/step_0\n", root_); };
  EXPECT_EQ(limit(), std::nullopt);
  write("/slurm/job_7/step_0/memory.max", "max");
  EXPECT_EQ(limit(), std::nullopt);
  write("/slurm/job_7/memory.max", "8589934592");
  EXPECT_EQ(limit(), 8589934592);
  write("/memory.max", "4294967296");
  EXPECT_EQ(limit(), 4294967296);
  write("/slurm/job_7/step_0/memory.max", "1073741824");
  EXPECT_EQ(limit(), 1073741824);
}

TEST_F(MemoryLimitTest, VersionOneHasAFolderForEachController) {
  const std::string text = "5:devices:/\n4:cpu,memory:/docker/a1\n0::/docker/a1\n";
  write("/memory/docker/a1/memory.limit_in_bytes", "2147483648");
  write("/memory/memory.limit_in_bytes", "9223372036854771712");
  EXPECT_EQ(cgroup_memory_limit(text, root_), 2147483648);
  EXPECT_EQ(cgroup_memory_limit("5:devices:/docker/a1\nnonsense\n", root_), std::nullopt);
}

TEST_F(MemoryLimitTest, OfThisProcess) {
  EXPECT_GT(usable_memory_bytes(), peak_resident_bytes());
  EXPECT_LE(usable_memory_bytes(), physical_memory_bytes());
}

#ifndef __SANITIZE_ADDRESS__  // which reserves more address space than the limit
TEST_F(MemoryLimitTest, OfTheAddressSpaceOfThisProcess) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  rlimit limited = before;
  limited.rlim_cur = rlim_t{3} << 30;
  ASSERT_EQ(setrlimit(RLIMIT_AS, &limited), 0);
  const std::size_t found = usable_memory_bytes();
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_LE(found, std::size_t{3} << 30);
}
#endif

TEST(GrowthLimitTest, IsAQuarterAndNamesTheFile) {
  const GrowthLimit limit;
  EXPECT_TRUE(limit.allows(usable_memory_bytes() / 4));
  EXPECT_FALSE(limit.allows(usable_memory_bytes() / 4 + 1));
  for (const bool compressed : {true, false}) try {
      limit.fail("a.csv.gz, line 7", compressed);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::data);
      EXPECT_EQ(error.where(), "a.csv.gz, line 7");
      EXPECT_EQ(error.advice().find("gzip -d") != std::string::npos, compressed);
    }
}

}  // namespace
}  // namespace lockstep
