// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/checkpoint_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <random>
#include <thread>

#include "checkpoint_testing.h"
#include "io/atomic_file.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::CheckpointFolder;
using testing::test_header;
using testing::test_tensors;
using testing::TestTensors;
using ::testing::UnorderedElementsAre;

void save(CheckpointStore& store, std::initializer_list<int> steps) {
  for (int step : steps) store.save(test_header(step), test_tensors(static_cast<unsigned>(step)).get());
}

/// The step of the newest intact checkpoint; -1 if there is none.
std::int64_t newest(const CheckpointStore& store, std::vector<std::string>* damaged = nullptr) {
  const auto path = store.newest_intact(damaged);
  return path ? CheckpointFile(*path).header().global_step : -1;
}

/// Overwrites the middle of the file with zeros: contents, in any layout.
void spoil(const std::string& path) {
  std::string bytes = read_whole_file(path);
  std::fill(bytes.begin() + 96, bytes.end() - 96, '\0');
  write_file_atomically(path, bytes);
}

TEST(CheckpointStore, SavesRecordsAndKeeps) {
  const CheckpointFolder folder;
  double now = 1.7e9;
  CheckpointStore store(folder.path(), RetentionRules{.keep = 2}, [&] { return now += 0.25; });
  EXPECT_EQ(newest(store), -1);
  EXPECT_THAT(folder.names(), IsEmpty());
  EXPECT_EQ(store.save(test_header(200), test_tensors().get()), folder / "checkpoints/step-00000200.h5");
  save(store, {300, 123456789});
  EXPECT_THAT(folder.names(), UnorderedElementsAre("checkpoint", "checkpoints"));
  EXPECT_THAT(folder.names("checkpoints"), UnorderedElementsAre("step-00000300.h5", "step-123456789.h5"));
  EXPECT_EQ(read_whole_file(folder / "checkpoint"),
            "model_checkpoint_path: \"checkpoints/step-123456789.h5\"\n"
            "all_model_checkpoint_paths: \"checkpoints/step-00000300.h5\"\n"
            "all_model_checkpoint_paths: \"checkpoints/step-123456789.h5\"\n"
            "all_model_checkpoint_timestamps: 1700000000.75\n"
            "all_model_checkpoint_timestamps: 1700000001\n");
  std::vector<std::string> damaged;
  EXPECT_EQ(newest(store, &damaged), 123456789);
  EXPECT_THAT(damaged, IsEmpty());
}

TEST(CheckpointStore, KeepZeroKeepsAll) {
  const CheckpointFolder folder;
  CheckpointStore store(folder.path(), 0);
  save(store, {1, 2, 3, 4});
  EXPECT_EQ(folder.names("checkpoints").size(), 4U);
  EXPECT_THROW(CheckpointStore(folder.path(), -1), Error);
}

TEST(CheckpointStore, StepSavedTwiceIsOneFile) {
  const CheckpointFolder folder;
  CheckpointStore store(folder.path(), 2);
  save(store, {1, 2, 2, 2});
  EXPECT_THAT(folder.names("checkpoints"), UnorderedElementsAre("step-00000001.h5", "step-00000002.h5"));
}

TEST(CheckpointStore, DamagedOnesAreReportedAndSkipped) {
  const CheckpointFolder folder;
  CheckpointStore store(folder.path(), 0);
  save(store, {1, 2, 3, 4});
  spoil(store.path_of(4));
  write_file_atomically(store.path_of(3), "");
  std::vector<std::string> damaged;
  EXPECT_EQ(newest(store, &damaged), 2);
  EXPECT_THAT(damaged, ElementsAre(HasSubstr("step-00000004.h5"), HasSubstr("step-00000003.h5")));
  std::filesystem::remove(store.path_of(4));
  spoil(store.path_of(2));
  spoil(store.path_of(1));
  damaged.clear();
  EXPECT_EQ(newest(store, &damaged), -1);
  EXPECT_EQ(damaged.size(), 4U);
  EXPECT_EQ(newest(store), -1);
}

TEST(CheckpointStore, EditedStateFileGoesBack) {
  const CheckpointFolder folder;
  CheckpointStore store(folder.path(), 3);
  save(store, {1, 2, 3});
  write_file_atomically(folder / "checkpoint",
                        "# went back\n\n  model_checkpoint_path: \"checkpoints/step-00000002.h5\"\n");
  EXPECT_EQ(newest(store), 2);
  spoil(store.path_of(2));
  EXPECT_EQ(newest(store), 1) << "never a later step than the requested one";

  save(store, {2});
  EXPECT_THAT(folder.names("checkpoints"),
              UnorderedElementsAre("step-00000001.h5", "step-00000002.h5", "step-00000003.h5"));
  EXPECT_EQ(newest(store), 2);
  write_file_atomically(folder / "checkpoint", "model_checkpoint_path: \"" + store.path_of(1) + "\"\n");
  EXPECT_EQ(newest(store), 1) << "absolute paths";
}

TEST(CheckpointStore, LaterStepsAreRemovedFirst) {
  const CheckpointFolder folder;
  CheckpointStore store(folder.path(), 2);
  save(store, {100, 200});
  write_file_atomically(folder / "checkpoint", "model_checkpoint_path: \"checkpoints/step-00000100.h5\"\n");
  save(store, {150});
  EXPECT_THAT(folder.names("checkpoints"), UnorderedElementsAre("step-00000100.h5", "step-00000150.h5"));
  EXPECT_EQ(newest(store), 150);
}

TEST(CheckpointStore, UnusableStateFile) {
  const CheckpointFolder folder;
  CheckpointStore store(folder.path(), 0);
  save(store, {1, 2});
  for (const char* text :
       {"", "nonsense", "model_checkpoint_path: \n", "model_checkpoint_path: \"\"\n",
        "model_checkpoint_path: \"checkpoints/step-00000009.h5\"\n", "model_checkpoint_path: \"nowhere\"\n",
        "all_model_checkpoint_paths: \"checkpoints/step-00000001.h5\"\n"}) {
    write_file_atomically(folder / "checkpoint", text);
    EXPECT_EQ(newest(store), 2) << text;
  }
  std::filesystem::remove(folder / "checkpoint");
  EXPECT_EQ(newest(store), 2);
  std::filesystem::create_directory(folder / "checkpoint");
  EXPECT_EQ(newest(store), 2);
}

TEST(CheckpointStore, CleanRemovesTemporaryFiles) {
  const CheckpointFolder folder;
  CheckpointStore store(folder.path(), 0);
  store.clean();
  save(store, {1});
  std::filesystem::create_directory(folder / "configs");
  const CheckpointFolder outside;
  std::filesystem::create_directory_symlink(outside.path(), folder / "link");
  for (const std::string& name :
       {temporary_name(store.path_of(2)), temporary_name(folder / "checkpoint"),
        temporary_name(folder / "configs/job-0001.yaml"), temporary_name(outside / "theirs")}) {
    std::FILE* file = std::fopen(name.c_str(), "w");
    ASSERT_NE(file, nullptr);
    ASSERT_EQ(std::fclose(file), 0);
  }
  EXPECT_EQ(folder.names().size() + folder.names("checkpoints").size(), 7U);
  store.clean();
  EXPECT_THAT(folder.names(), UnorderedElementsAre("checkpoint", "checkpoints", "configs", "link"));
  EXPECT_EQ(folder.names("configs").size(), 0U);
  EXPECT_EQ(outside.names().size(), 1U);
  EXPECT_THAT(folder.names("checkpoints"), ElementsAre("step-00000001.h5"));
}

// A process that saves continuously is killed at random times. A checkpoint must remain usable, and the next
// process continues from it.
TEST(CheckpointStore, DirectoryStaysUsableAfterRandomKills) {
  constexpr int kKills = 30;
  const CheckpointFolder folder;
  TestTensors tensors;
  tensors.add("variables/a", DType::f32, {40'000});
  tensors.add("variables/b", DType::f32, {7});
  CheckpointStore store(folder.path(), 2);
  store.save(test_header(1), tensors.get());
  std::mt19937 random(20);
  std::int64_t reached = 1;
  int leftovers = 0;
  for (int kill = 0; kill < kKills; ++kill) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ::alarm(60);
      try {
        for (std::int64_t step = reached + 1;; ++step) store.save(test_header(step), tensors.get());
      } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
      }
      ::_exit(1);
    }
    std::this_thread::sleep_for(
        std::chrono::microseconds(std::uniform_int_distribution<int>(2'000, 60'000)(random)));
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the child failed";

    std::vector<std::string> damaged;
    const std::int64_t found = newest(store, &damaged);
    ASSERT_THAT(damaged, IsEmpty()) << damaged.front();
    ASSERT_GE(found, reached);
    reached = found;
    for (const std::string& name : folder.names("checkpoints")) leftovers += is_temporary_name(name) ? 1 : 0;
    store.clean();
    for (const std::string& name : folder.names("checkpoints")) EXPECT_FALSE(is_temporary_name(name)) << name;
  }
  EXPECT_GT(reached, 1) << "no child finished a save, so nothing was tested";
  EXPECT_GT(leftovers, 0) << "no child was killed during a save, so nothing was tested";
}

}  // namespace
}  // namespace lockstep
