// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/saver.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "comm/self_communicator.h"
#include "support/error_support.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::message_of;
using testing::TemporaryFolder;

constexpr double kLong = 60, kMeet = 0.01;

class SaverTest : public ::testing::TestWithParam<bool> {
 protected:
  SaverTest() : saver_(true, folder_.path(), options()) { saver_.prepare(header(0), tensors_, {}); }
  static SaverOptions options() {
    SaverOptions options;
    options.background = GetParam();
    options.timeout_seconds = kLong;
    return options;
  }
  static CheckpointHeader header(std::int64_t step) { return {.global_step = step}; }
  std::string file(std::int64_t step) const { return CheckpointStore(folder_.path(), 0).path_of(step); }
  /// From here on nothing can be written.
  void break_disk() {
    std::filesystem::rename(folder_.path() / "checkpoints", folder_.path() / "aside");
    std::ofstream(folder_.path() / "checkpoints") << "no folder";
  }
  void mend_disk() {
    std::filesystem::remove(folder_.path() / "checkpoints");
    std::filesystem::rename(folder_.path() / "aside", folder_.path() / "checkpoints");
  }

  TemporaryFolder folder_;
  std::vector<float> values_ = std::vector<float>(1000, 1.0F);
  std::vector<CheckpointTensor> tensors_{{"variables/a", Tensor(values_.data(), DType::f32, {1000})}};
  SelfCommunicator world_;
  Saver saver_;
};

TEST_P(SaverTest, PollReturnsDurableCheckpoints) {
  ASSERT_TRUE(saver_.save(header(3), tensors_));
  saver_.wait(kLong);
  EXPECT_FALSE(saver_.busy());
  const std::vector<CheckpointOutcome> done = saver_.poll();
  ASSERT_EQ(done.size(), 1U);
  EXPECT_EQ(done[0].step, 3);
  EXPECT_EQ(done[0].path, file(3));
  EXPECT_EQ(done[0].bytes, 4000U);
  EXPECT_GT(done[0].write_seconds, 0);
  CheckpointFile(file(3)).verify();
  EXPECT_TRUE(saver_.poll().empty());
}

TEST_P(SaverTest, FailureDuringTheRunIsAWarning) {
  ASSERT_TRUE(saver_.save(header(1), tensors_));
  saver_.wait(kLong);
  break_disk();
  ASSERT_TRUE(saver_.save(header(2), tensors_));
  saver_.wait(kLong);
  mend_disk();
  ASSERT_TRUE(saver_.save(header(3), tensors_));
  saver_.wait(kLong);
  const std::vector<CheckpointOutcome> done = saver_.poll();
  ASSERT_EQ(done.size(), 3U);
  EXPECT_FALSE(done[0].error);
  ASSERT_TRUE(done[1].error);
  EXPECT_THAT(done[1].error->what(), HasSubstr("checkpoints"));
  EXPECT_FALSE(done[2].error);
}

TEST_P(SaverTest, FinishWaitsForTheFile) {
  ASSERT_TRUE(saver_.save(header(1), tensors_));
  saver_.finish(world_, header(2), tensors_, kMeet);
  EXPECT_EQ(saver_.poll().size(), 2U);
  CheckpointFile(file(2)).verify();
}

TEST_P(SaverTest, FinishDoesNotWriteTheSameStepTwice) {
  ASSERT_TRUE(saver_.save(header(2), tensors_));
  saver_.finish(world_, header(2), tensors_, kMeet);
  EXPECT_EQ(saver_.poll().size(), 1U);
}

TEST_P(SaverTest, FinishTriesAgainAndThenFails) {
  ASSERT_TRUE(saver_.save(header(1), tensors_));
  saver_.wait(kLong);
  break_disk();
  ASSERT_TRUE(saver_.save(header(2), tensors_));
  saver_.wait(kLong);
  EXPECT_THAT(message_of([&] { saver_.finish(world_, header(2), tensors_, kMeet); }, ErrorKind::checkpoint),
              HasSubstr("checkpoints"));
  EXPECT_EQ(saver_.poll().size(), 2U) << "the error is told once";
  mend_disk();
  saver_.finish(world_, header(2), tensors_, kMeet);
  CheckpointFile(file(2)).verify();
}

INSTANTIATE_TEST_SUITE_P(Background, SaverTest, ::testing::Values(false, true));

TEST(Saver, OtherRanksDoNothing) {
  const TemporaryFolder folder;
  Saver saver(false, folder.path(), {});
  saver.prepare({}, {}, {});
  EXPECT_TRUE(saver.save({.global_step = 1}, {}));
  EXPECT_FALSE(saver.busy());
  saver.wait(0);
  saver.note_metric(1, 2);
  EXPECT_TRUE(saver.poll().empty());
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Saver, RefusesADiskWithoutRoom) {
  const TemporaryFolder folder;
  Saver saver(true, folder.path(), {});
  float value = 0;
  const std::vector<CheckpointTensor> huge{
      {"variables/a", Tensor(&value, DType::f32, {std::int64_t{1} << 55})}};
  EXPECT_THAT(message_of([&] { saver.prepare({}, huge, {}); }, ErrorKind::checkpoint),
              AllOf(HasSubstr("6 more checkpoints"), HasSubstr("MB are free"), HasSubstr("checkpoint.keep")));
}

}  // namespace
}  // namespace lockstep
