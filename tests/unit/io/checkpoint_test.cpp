// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "checkpoint_testing.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;
using testing::CheckpointFolder;
using testing::test_header;
using testing::test_tensors;
using testing::TestTensors;

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::checkpoint) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return {};
}

TEST(Checkpoint, RoundTripOfEveryDtypeAndOddShapes) {
  TestTensors tensors;
  int number = 0;
  for (DType type : {DType::f32, DType::f64, DType::bf16, DType::f16, DType::i32, DType::i64, DType::u8,
                     DType::i8, DType::i16, DType::u16})
    for (const Shape& shape :
         {Shape{}, Shape{1}, Shape{13}, Shape{3, 1, 5}, Shape{2, 0, 3}, Shape{1, 2, 1, 3, 1, 2, 1, 5}})
      tensors.add(fmt::format("variables/layer{}/{}", number++, name_of(type)), type, shape);
  const CheckpointFolder folder;
  const std::string path = folder / "a.h5";
  write_checkpoint(path, test_header(), tensors.get());
  EXPECT_THAT(folder.names(), ::testing::ElementsAre("a.h5"));

  const CheckpointFile file(path);
  EXPECT_EQ(file.header().global_step, 200);
  EXPECT_EQ(file.header().epoch, 3);
  EXPECT_EQ(file.header().samples_consumed, 640);
  EXPECT_EQ(file.header().shards, 4);
  EXPECT_EQ(file.header().seed, 0xFEDCBA9876543210U);
  EXPECT_EQ(file.header().config, test_header().config);
  EXPECT_EQ(file.header().lockstep_version, "0.1.0");
  EXPECT_THAT(file.header().created, ::testing::MatchesRegex("....-..-..T..:..:..Z"));
  EXPECT_EQ(file.header().digest, checkpoint_digest(test_header(), tensors.get()));
  EXPECT_EQ(file.entries().size(), tensors.get().size());
  for (const CheckpointTensor& saved : tensors.get()) {
    ASSERT_TRUE(file.has(saved.path)) << saved.path;
    std::vector<std::uint64_t> block(saved.tensor.size_bytes() / 8 + 1, ~std::uint64_t{0});
    const Tensor read(block.data(), saved.tensor.dtype(), saved.tensor.shape());
    ASSERT_TRUE(read.size_bytes() == 0 ||
                std::memcmp(read.raw(), saved.tensor.raw(), read.size_bytes()) != 0);
    file.read_into(saved.path, read);
    EXPECT_EQ(std::memcmp(read.raw(), saved.tensor.raw(), read.size_bytes()), 0) << saved.path;
  }
  file.verify();
}

TEST(Checkpoint, LongConfigAndManyTensors) {
  CheckpointHeader header = test_header();
  header.config.assign(300'000, 'x');
  TestTensors tensors;
  for (int i = 0; i < 500; ++i) tensors.add(fmt::format("variables/dense{}/kernel", i), DType::f32, {3});
  const CheckpointFolder folder;
  write_checkpoint(folder / "a.h5", header, tensors.get());
  const CheckpointFile file(folder / "a.h5");
  EXPECT_EQ(file.header().config, header.config);
  EXPECT_EQ(file.entries().size(), 500U);
  file.verify();
}

TEST(Checkpoint, WithoutTensorsAndWithEmptyTexts) {
  const CheckpointFolder folder;
  write_checkpoint(folder / "a.h5", CheckpointHeader{}, {});
  const CheckpointFile file(folder / "a.h5");
  EXPECT_EQ(file.header().config, "");
  EXPECT_TRUE(file.entries().empty());
  file.verify();
}

TEST(Checkpoint, DigestCoversContentsAndCursorOnly) {
  const TestTensors tensors = test_tensors();
  const std::string digest = checkpoint_digest(test_header(), tensors.get());
  EXPECT_EQ(digest.size(), 32U);

  std::vector<CheckpointTensor> reversed(tensors.get().rbegin(), tensors.get().rend());
  EXPECT_EQ(checkpoint_digest(test_header(), reversed), digest);
  CheckpointHeader other = test_header();
  other.config = other.lockstep_version = other.created = other.digest = "other";
  EXPECT_EQ(checkpoint_digest(other, tensors.get()), digest);

  for (auto member : {&CheckpointHeader::global_step, &CheckpointHeader::epoch,
                      &CheckpointHeader::samples_consumed, &CheckpointHeader::shards}) {
    other = test_header();
    other.*member += 1;
    EXPECT_NE(checkpoint_digest(other, tensors.get()), digest);
  }
  other = test_header();
  other.seed ^= std::uint64_t{1} << 63;
  EXPECT_NE(checkpoint_digest(other, tensors.get()), digest);

  std::vector<CheckpointTensor> changed = tensors.get();
  changed[0].path = "variables/conv2/kernel";
  EXPECT_NE(checkpoint_digest(test_header(), changed), digest);
  changed = tensors.get();
  changed[0].tensor = Tensor(changed[0].tensor.raw(), DType::f32, Shape{3, 5, 1, 7});
  EXPECT_NE(checkpoint_digest(test_header(), changed), digest);
  changed[0].tensor = Tensor(tensors.get()[0].tensor.raw(), DType::i32, Shape{3, 1, 5, 7});
  EXPECT_NE(checkpoint_digest(test_header(), changed), digest);
  EXPECT_NE(checkpoint_digest(test_header(), test_tensors(1).get()), digest);
}

TEST(Checkpoint, RejectsMismatchingTensors) {
  const CheckpointFolder folder;
  write_checkpoint(folder / "a.h5", test_header(), test_tensors().get());
  const CheckpointFile file(folder / "a.h5");
  std::array<double, 64> room{};
  EXPECT_THAT(
      message_of([&] { file.read_into("variables/conv1/bias", Tensor(room.data(), DType::f32, {8})); }),
      AllOf(HasSubstr(folder / "a.h5"), HasSubstr("variables/conv1/bias"), HasSubstr("of 7"),
            HasSubstr("of 8")));
  EXPECT_THAT(
      message_of([&] { file.read_into("variables/conv1/bias", Tensor(room.data(), DType::i32, {7})); }),
      AllOf(HasSubstr("variables/conv1/bias"), HasSubstr(std::string(name_of(DType::i32)))));
  EXPECT_THAT(message_of([&] { file.read_into("variables/none", Tensor(room.data(), DType::f32, {7})); }),
              AllOf(HasSubstr(folder / "a.h5"), HasSubstr("variables/none")));
  EXPECT_THAT(message_of([&] { CheckpointFile(folder / "missing.h5"); }), HasSubstr("missing.h5"));
  EXPECT_THAT(message_of([&] { CheckpointFile(folder.path()); }), HasSubstr("regular file"));
}

TEST(Checkpoint, TwoTensorsWithOnePathAreABug) {
  const CheckpointFolder folder;
  TestTensors tensors;
  tensors.add("variables/a", DType::f32, {2});
  tensors.add("variables/a", DType::f32, {2});
  EXPECT_THROW(write_checkpoint(folder / "a.h5", test_header(), tensors.get()), Error);
  EXPECT_TRUE(folder.names().empty());
}

TEST(Checkpoint, FailureKeepsTheOldFile) {
  const CheckpointFolder folder;
  write_checkpoint(folder / "a.h5", test_header(1), test_tensors().get());
  TestTensors tensors;  // a dataset cannot be a group too
  tensors.add("variables/a", DType::f32, {2});
  tensors.add("variables/a/b", DType::f32, {2});
  EXPECT_THAT(message_of([&] { write_checkpoint(folder / "a.h5", test_header(2), tensors.get()); }),
              AllOf(HasSubstr(folder / "a.h5"), HasSubstr("variables/a/b")));
  EXPECT_THAT(folder.names(), ::testing::ElementsAre("a.h5"));
  EXPECT_EQ(CheckpointFile(folder / "a.h5").header().global_step, 1);
}

}  // namespace
}  // namespace lockstep
