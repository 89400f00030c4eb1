// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What a checkpoint keeps of the data: CheckpointHeader::kept.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoint_testing.h"
#include "io/checkpoint.h"
#include "io/checkpoint_store.h"

namespace lockstep {
namespace {

using testing::CheckpointFolder;
using ::testing::HasSubstr;
using testing::test_header;
using testing::test_tensors;

CheckpointHeader with_files(const KeptFiles& files) {
  CheckpointHeader header = test_header();
  header.kept = std::make_shared<const KeptFiles>(files);
  return header;
}

TEST(CheckpointKept, AnyBytesOfAnySizeComeBack) {
  KeptFiles files{
      {"classes.txt", "cat\ndog\n"}, {"empty.txt", ""}, {"whitening-x.npy", std::string(300'000, '\0')}};
  for (std::size_t i = 0; i < files["whitening-x.npy"].size(); ++i)
    files["whitening-x.npy"][i] = static_cast<char>(i * 31);
  const CheckpointFolder folder;
  const auto tensors = test_tensors();
  write_checkpoint(folder / "a.h5", with_files(files), tensors.get());
  const CheckpointFile file(folder / "a.h5");
  ASSERT_NE(file.header().kept, nullptr);
  EXPECT_EQ(*file.header().kept, files);
  file.verify();
}

TEST(CheckpointKept, TheFilesAreNoTensorsAndNoPartOfTheDigest) {
  const CheckpointFolder folder;
  const auto tensors = test_tensors();
  write_checkpoint(folder / "with.h5", with_files({{"classes.txt", "cat\n"}}), tensors.get());
  write_checkpoint(folder / "without.h5", test_header(), tensors.get());
  const CheckpointFile with(folder / "with.h5"), without(folder / "without.h5");
  EXPECT_EQ(with.header().digest, without.header().digest);
  EXPECT_EQ(with.entries().size(), without.entries().size());
  EXPECT_EQ(without.header().kept, nullptr);
}

TEST(CheckpointKept, AFlippedByteIsNoticed) {
  const CheckpointFolder folder;
  const auto tensors = test_tensors();
  const std::string path = folder / "a.h5", text = "a text that is easy to find in the file";
  write_checkpoint(path, with_files({{"classes.txt", text}}), tensors.get());
  std::FILE* const file = std::fopen(path.c_str(), "r+b");
  ASSERT_NE(file, nullptr);
  std::string bytes(std::filesystem::file_size(path), '\0');
  ASSERT_EQ(std::fread(bytes.data(), 1, bytes.size(), file), bytes.size());
  const std::size_t at = bytes.find(text);
  ASSERT_NE(at, std::string::npos);
  std::fseek(file, static_cast<long>(at), SEEK_SET);
  std::fputc('b', file);
  std::fclose(file);
  EXPECT_THROW(CheckpointFile{path}, Error);
}

TEST(CheckpointKept, ACopiedCheckpointIsFoundInAFolderOfItsOwn) {
  const CheckpointFolder folder;
  const auto tensors = test_tensors();
  write_checkpoint(folder / "step-00000100.h5", test_header(100), tensors.get());
  write_checkpoint(folder / "step-00000200.h5", test_header(200), tensors.get());
  EXPECT_THAT(CheckpointStore(folder.path(), 0).newest_intact(nullptr).value_or(""),
              HasSubstr("step-00000200.h5"));
}

}  // namespace
}  // namespace lockstep
