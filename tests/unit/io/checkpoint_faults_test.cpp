// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The state after each fault of io/fault_points.h, each in its own process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "checkpoint_testing.h"
#include "core/fault.h"
#include "io/atomic_file.h"
#include "io/checkpoint_store.h"

namespace lockstep {
namespace {

using testing::CheckpointFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::test_header;
using testing::test_tensors;

constexpr int kSaved = 0, kRefused = 40;

/// Saves steps 1, 2 and 3 with a fault at step 2. Returns the child's status; the message of the error is in
/// a file.
int save_with(const std::string& kind, const CheckpointFolder& folder) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    plan_faults("2:0:" + kind);  // the parent may have read the environment already
    CheckpointStore store(folder.path(), 0);
    int code = kSaved;
    for (int step = 1; step <= 3; ++step) try {
        store.save(test_header(step), test_tensors(static_cast<unsigned>(step)).get());
      } catch (const Error& error) {
        testing::write_file(folder / "message", error.what());
        code = step == 2 && error.kind() == ErrorKind::checkpoint ? kRefused : 99;
      }
    ::_exit(code);
  }
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

bool exited(int status, int code) { return WIFEXITED(status) && WEXITSTATUS(status) == code; }

std::vector<std::string> saved(const CheckpointFolder& folder) {
  std::vector<std::string> names = folder.names("checkpoints");
  std::sort(names.begin(), names.end());
  return names;
}

TEST(CheckpointFaults, FailedWriteIsAnErrorAndTheNextSaveWorks) {
  for (const auto& [kind, words] :
       {std::pair{"ENOSPC", "disk is full"}, std::pair{"EIO", "Input/output error"},
        std::pair{"EIO_fsync", "flush to disk"}}) {
    const CheckpointFolder folder;
    EXPECT_TRUE(exited(save_with(kind, folder), kRefused)) << kind;
    EXPECT_THAT(read_whole_file(folder / "message"), HasSubstr(words));
    EXPECT_THAT(saved(folder), ElementsAre("step-00000001.h5", "step-00000003.h5")) << kind;
    CheckpointFile(folder / "checkpoints/step-00000003.h5").verify();
  }
}

TEST(CheckpointFaults, ShortWriteIsContinued) {
  const CheckpointFolder folder, undisturbed;
  EXPECT_TRUE(exited(save_with("short_write", folder), kSaved));
  CheckpointFile(folder / "checkpoints/step-00000002.h5").verify();
}

TEST(CheckpointFaults, KilledWriterLeavesAUsableDirectory) {
  for (const std::string kind :
       {"kill_in_write", "kill_before_fsync", "kill_before_rename", "kill_after_rename"}) {
    const CheckpointFolder folder;
    const int status = save_with(kind, folder);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << kind;
    CheckpointStore store(folder.path(), 0);
    EXPECT_EQ(store.newest_intact(nullptr), store.path_of(1)) << kind;
    const bool renamed = kind == "kill_after_rename";
    EXPECT_EQ(saved(folder).size(), 2U) << kind << ": the temporary, or the new file";
    store.clean();
    EXPECT_EQ(saved(folder).size(), renamed ? 2U : 1U) << kind;
    if (renamed) CheckpointFile(store.path_of(2)).verify();
  }
}

}  // namespace
}  // namespace lockstep
