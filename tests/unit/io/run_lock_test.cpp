// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/run_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <optional>
#include <thread>

#include "checkpoint_testing.h"
#include "core/cpu.h"
#include "core/error.h"
#include "io/atomic_file.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;
using testing::CheckpointFolder;

std::string refusal(const std::string& folder) {
  try {
    const RunLock lock(folder, 0.05);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::config);
    return error.what();
  }
  return {};
}

/// A child that holds the lock until it is killed. Returns when it holds the lock.
pid_t child_with_lock(const std::string& folder) {
  std::array<int, 2> ready{};
  if (::pipe(ready.data()) != 0) return -1;
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);  // ends soon after the test in any case
    std::optional<RunLock> lock;
    try {
      lock.emplace(folder);
    } catch (const std::exception&) {
      ::_exit(1);
    }
    if (::write(ready[1], "x", 1) != 1) ::_exit(2);
    for (;;) ::pause();
  }
  ::close(ready[1]);
  char byte = 0;
  const ssize_t got = ::read(ready[0], &byte, 1);
  ::close(ready[0]);
  EXPECT_EQ(got, 1);
  return child;
}

TEST(RunLock, NamesTheHolderAndEndsWithIt) {
  const CheckpointFolder folder;
  const pid_t child = child_with_lock(folder.path());
  ASSERT_GT(child, 0);
  EXPECT_THAT(refusal(folder.path()),
              AllOf(HasSubstr(folder.path()), HasSubstr(fmt::format("process {} on {}", child, host_name())),
                    HasSubstr("--run-dir")));
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(refusal(folder.path()), "");
}

TEST(RunLock, WaitsForAHolderThatIsAboutToEnd) {
  const CheckpointFolder folder;
  std::optional<RunLock> holder(std::in_place, folder.path());
  std::thread ending([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    holder.reset();
  });
  EXPECT_NO_THROW(RunLock(folder.path(), 30));
  ending.join();
}

TEST(RunLock, HoldsWithinTheProcessAndIsReleased) {
  const CheckpointFolder folder;
  {
    const RunLock lock(folder.path());
    EXPECT_THAT(refusal(folder.path()), HasSubstr(fmt::format("process {} on", ::getpid())));
    EXPECT_THAT(refusal(folder.path()), HasSubstr("in use"));  // a refused attempt released nothing
  }
  EXPECT_EQ(refusal(folder.path()), "");
}

TEST(RunLock, MissingRunDirectoryIsAnError) {
  EXPECT_THAT(refusal("/nonexistent/run"), HasSubstr("/nonexistent/run/.lock"));
}

TEST(RunLock, KnowsThatItIsTakenAway) {
  const CheckpointFolder folder;
  const RunLock lock(folder.path());
  EXPECT_EQ(lock.lost(), "");
  std::filesystem::rename(folder / ".lock", folder / "kept");
  EXPECT_THAT(lock.lost(), HasSubstr(".lock has been removed"));
  const RunLock other(folder.path());
  EXPECT_THAT(lock.lost(), HasSubstr(".lock has been replaced"));
  EXPECT_EQ(other.lost(), "");
  std::filesystem::rename(folder.path(), folder.path() + ".away");
  EXPECT_THAT(other.lost(), HasSubstr("directory has been removed"));
  std::filesystem::rename(folder.path() + ".away", folder.path());
}

TEST(RunLock, FollowsNoLink) {
  const CheckpointFolder folder;
  write_file_atomically(folder / "target", "precious");
  std::filesystem::create_symlink(folder / "target", folder / ".lock");
  EXPECT_THAT(refusal(folder.path()), HasSubstr(".lock: is a symbolic link, which is not followed"));
  EXPECT_EQ(read_whole_file(folder / "target"), "precious");
}

}  // namespace
}  // namespace lockstep
