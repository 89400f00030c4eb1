// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The background writer writes the tensors as of the call of start().
#include "io/checkpoint_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <thread>

#include "checkpoint_testing.h"
#include "core/thread_pool.h"
#include "io/atomic_file.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;
using testing::CheckpointFolder;
using testing::test_header;
using testing::test_tensors;
using testing::TestTensors;

constexpr double kLong = 60;

std::shared_ptr<CheckpointStore> store_in(const CheckpointFolder& folder, int keep = 0) {
  return std::make_shared<CheckpointStore>(folder.path(), keep);
}

TestTensors large_tensors(unsigned salt = 0) {
  TestTensors tensors = test_tensors(salt);
  tensors.add("variables/dense/kernel", DType::f32, {1500, 1001}, salt);
  tensors.add("variables/empty", DType::f32, {0}, salt);
  tensors.add("slots/m/dense/kernel", DType::f32, {1500, 1001}, salt);
  return tensors;
}

void fill(const TestTensors& tensors, int value) {
  for (const CheckpointTensor& entry : tensors.get())
    if (entry.tensor.size_bytes() > 0) std::memset(entry.tensor.raw(), value, entry.tensor.size_bytes());
}

TEST(CheckpointWriter, WritesTheTensorsAsOfStart) {
  for (const int threads : {1, 3}) {
    const CheckpointFolder folder;
    ThreadPool pool(threads);
    const TestTensors tensors = large_tensors();
    CheckpointWriter writer(store_in(folder), tensors.get(), {.pool = &pool});
    for (int step = 1; step <= 4; ++step) {
      const std::string before = checkpoint_digest(test_header(step), tensors.get());
      writer.start(test_header(step), tensors.get());
      for (int i = 0; writer.busy(); ++i) fill(tensors, 2 * step + i % 2);
      fill(tensors, 2 * step);
      ASSERT_NE(checkpoint_digest(test_header(step), tensors.get()), before) << "nothing changed";
      const std::vector<CheckpointOutcome> done = writer.poll();
      ASSERT_EQ(done.size(), 1U);
      ASSERT_FALSE(done[0].error) << done[0].error->what();
      EXPECT_EQ(done[0].step, step);
      EXPECT_GT(done[0].write_seconds, 0);
      EXPECT_GT(done[0].bytes, 12'000'000U);
      const CheckpointFile file(done[0].path);
      file.verify();
      EXPECT_EQ(file.header().digest, before);
    }
    EXPECT_TRUE(writer.poll().empty());
  }
}

TEST(CheckpointWriter, TensorsMayGrow) {
  const CheckpointFolder folder;
  const TestTensors small = test_tensors(), large = large_tensors();
  CheckpointWriter writer(store_in(folder), small.get(), {});
  for (const TestTensors* tensors : {&small, &large, &small}) {
    writer.start(test_header(1), tensors->get());
    ASSERT_TRUE(writer.wait(kLong));
    const auto done = writer.poll();
    ASSERT_EQ(done.size(), 1U);
    EXPECT_EQ(CheckpointFile(done[0].path).header().digest,
              checkpoint_digest(test_header(1), tensors->get()));
  }
}

TEST(CheckpointWriter, FailureIsReportedAndTheNextOneWorks) {
  const CheckpointFolder folder;
  const TestTensors tensors = test_tensors();
  CheckpointWriter writer(store_in(folder), tensors.get(), {});
  testing::write_file(folder / "checkpoints", "a file where the folder should be");
  writer.start(test_header(1), tensors.get());
  ASSERT_TRUE(writer.wait(kLong));
  auto done = writer.poll();
  ASSERT_EQ(done.size(), 1U);
  ASSERT_TRUE(done[0].error);
  EXPECT_EQ(done[0].error->kind(), ErrorKind::checkpoint);
  EXPECT_EQ(done[0].path, "");
  std::filesystem::remove(folder / "checkpoints");
  writer.start(test_header(2), tensors.get());
  ASSERT_TRUE(writer.wait(kLong));
  done = writer.poll();
  ASSERT_EQ(done.size(), 1U);
  EXPECT_FALSE(done[0].error);
  EXPECT_EQ(done[0].step, 2);
}

/// A store whose clock, which save() calls after writing the file, blocks the writer.
class HeldStore {
 public:
  explicit HeldStore(const CheckpointFolder& folder)
      : store_(std::make_shared<CheckpointStore>(folder.path(), RetentionRules{.keep = 0}, [this] {
          while (held) std::this_thread::sleep_for(std::chrono::milliseconds(1));
          return 1.7e9;
        })) {}
  const std::shared_ptr<CheckpointStore>& get() const { return store_; }
  std::atomic<bool> held{false};

 private:
  std::shared_ptr<CheckpointStore> store_;
};

TEST(CheckpointWriter, OneInFlightAndWaitWithALimit) {
  const CheckpointFolder folder;
  HeldStore store(folder);
  const TestTensors tensors = test_tensors();
  CheckpointWriter writer(store.get(), tensors.get(), {});
  store.held = true;
  writer.start(test_header(7), tensors.get());
  EXPECT_TRUE(writer.busy());
  EXPECT_EQ(writer.step(), 7);
  EXPECT_FALSE(writer.wait(0.05));
  EXPECT_TRUE(writer.poll().empty());
  EXPECT_THROW(writer.start(test_header(8), tensors.get()), Error);
  store.held = false;
  EXPECT_TRUE(writer.wait(kLong));
  EXPECT_FALSE(writer.busy());
  EXPECT_EQ(writer.poll().size(), 1U);
}

TEST(CheckpointWriter, DestructorLetsTheOneInFlightEnd) {
  const CheckpointFolder folder;
  const TestTensors tensors = large_tensors();
  { CheckpointWriter(store_in(folder), tensors.get(), {}).start(test_header(9), tensors.get()); }
  CheckpointStore store(folder.path(), 0);
  EXPECT_EQ(store.newest_intact(nullptr), store.path_of(9));
}

TEST(CheckpointWriter, DestructorDoesNotWaitForAHungDisk) {
  const CheckpointFolder folder;
  HeldStore store(folder);
  const TestTensors tensors = test_tensors();
  const auto begin = std::chrono::steady_clock::now();
  {
    CheckpointWriter writer(store.get(), tensors.get(), {});
    store.held = true;
    writer.start(test_header(1), tensors.get());
  }
  EXPECT_TRUE(store.held) << "the writer was released";
  EXPECT_GT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5))
      << "the destructor did not wait";
  store.held = false;  // the detached thread still owns everything that it uses
  CheckpointStore reader(folder.path(), 0);
  for (int i = 0; i < 6000 && !reader.newest_intact(nullptr); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(reader.newest_intact(nullptr), reader.path_of(1));
  while (store.get().use_count() > 1) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

TEST(CheckpointWriter, CancelledWriteLeavesNothing) {
  const CheckpointFolder folder;
  const std::atomic<bool> cancelled{true};
  try {
    write_checkpoint(folder / "a.h5", test_header(), test_tensors().get(), &cancelled);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("cancelled"));
  }
  EXPECT_TRUE(folder.names().empty());
}

TEST(CheckpointWriter, MetricMayBeNotedDuringAWrite) {
  const CheckpointFolder folder;
  auto store = std::make_shared<CheckpointStore>(folder.path(), RetentionRules{.keep = 2, .keep_best = 1});
  const TestTensors tensors = test_tensors();
  CheckpointWriter writer(store, tensors.get(), {});
  for (int step = 1; step <= 10; ++step) {
    writer.start(test_header(step), tensors.get());
    store->note_metric(step, step == 3 ? 0.1 : 1.0);
    ASSERT_TRUE(writer.wait(kLong));
  }
  for (const CheckpointOutcome& outcome : writer.poll()) EXPECT_FALSE(outcome.error);
  std::vector<std::int64_t> steps;
  for (const KeptCheckpoint& kept : store->list()) steps.push_back(kept.step);
  EXPECT_THAT(steps, ::testing::ElementsAre(3, 9, 10));
}

}  // namespace
}  // namespace lockstep
