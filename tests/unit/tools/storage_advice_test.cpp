// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/samples/storage_advice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace lockstep::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(ChunkAdvice, OfWhatIsLargeOrSlow) {
  const StoredChunks good{
      .where = "x.h5, dataset image", .samples = 10000, .samples_per_chunk = 64, .chunk_bytes = 2e5};
  EXPECT_THAT(chunk_advice(good, true, 1e6), IsEmpty());
  StoredChunks large = good;
  large.samples_per_chunk = 10000, large.chunk_bytes = 3.1e7;
  EXPECT_THAT(chunk_advice(large, true, 1e6), IsEmpty());
  large.chunk_bytes = 3.3e7;
  EXPECT_THAT(
      chunk_advice(large, false, 1e6),
      ElementsAre(HasSubstr("dataset image: a chunk has 10000 samples, 33 MB, which are read as a whole")));
  StoredChunks one = large;
  one.samples_per_chunk = 1;
  EXPECT_THAT(chunk_advice(one, false, 1e6), IsEmpty()) << "without compression a part of it can be read";
  one.compressed = true, one.unpack_seconds = 0.1;
  EXPECT_THAT(chunk_advice(one, false, 1e6),
              ElementsAre(HasSubstr("each sample is one compressed chunk of 33 MB (0.1 s)")));
  StoredChunks parts = good;
  parts.whole_samples = false;
  EXPECT_THAT(chunk_advice(parts, true, 1e6), IsEmpty());
  parts.compressed = true;
  EXPECT_THAT(chunk_advice(parts, true, 1e6),
              ElementsAre(HasSubstr("compressed chunks have parts of samples")));
}

TEST(ChunkAdvice, OfCompressionThatOneCoreCannotKeepUpWith) {
  const StoredChunks slow{.where = "x.h5, dataset image",
                          .samples = 10000,
                          .samples_per_chunk = 64,
                          .chunk_bytes = 2e5,
                          .compressed = true,
                          .unpack_seconds = 0.001};
  EXPECT_THAT(chunk_advice(slow, true, 400000),
              ElementsAre(::testing::AllOf(
                  HasSubstr("one core unpacks 6.4e+04 samples/s (200 MB/s), and makes 4e+05 samples/s"),
                  HasSubstr("up to 7 of them (data.reader_threads) help"))));
  EXPECT_THAT(chunk_advice(slow, true, 100000), IsEmpty());
  EXPECT_THAT(chunk_advice(slow, false, 400000), IsEmpty()) << "unpacked once, into memory";
}

class FileSystemAdviceTest : public ::testing::Test {
 protected:
  FileSystemAdviceTest() {
    std::string name = (std::filesystem::temp_directory_path() / "lockstep-fs-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    folder_ = name;
  }
  ~FileSystemAdviceTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  /// Sparse.
  std::string file(const std::string& name, std::uintmax_t bytes) const {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path).put('x');
    std::filesystem::resize_file(path, bytes);
    return path;
  }
  std::string folder_;
};

TEST_F(FileSystemAdviceTest, StripesOfLargeFiles) {
  const std::vector<std::string> files = {file("small.h5", 1000), file("large.h5", std::uintmax_t{3} << 30)};
  const auto of = [&](std::uint64_t type) {
    return file_system_advice(files, [&](const std::string& path) {
      EXPECT_EQ(path, files[1]);
      return type;
    });
  };
  EXPECT_THAT(of(0x0BD00BD0),
              ElementsAre(::testing::AllOf(HasSubstr("large.h5 has 3.2 GB and lies on Lustre"),
                                           HasSubstr("`lfs getstripe -c " + files[1]),
                                           HasSubstr("lfs setstripe -c 8 -S 4M " + folder_))));
  EXPECT_THAT(of(0x19830326),
              ElementsAre(HasSubstr("beegfs-ctl --setpattern --numtargets=8 --chunksize=4m " + folder_)));
  EXPECT_THAT(of(0xEF53), IsEmpty()) << "ext4";
  EXPECT_THAT(file_system_advice(std::span(files).first(1),
                                 [](const std::string&) { return std::uint64_t{0x0BD00BD0}; }),
              IsEmpty());
  EXPECT_EQ(file_system_of("/proc"), 0x9FA0U);
  EXPECT_EQ(file_system_of(folder_ + "/none"), 0U);
}

TEST_F(FileSystemAdviceTest, ManySmallFiles) {
  const std::vector<std::string> files(10000, file("a.jpg", 50000));
  const auto lustre = [](const std::string&) { return std::uint64_t{0x0BD00BD0}; };
  EXPECT_THAT(file_system_advice(files, lustre),
              ElementsAre(HasSubstr("10000 files of 50 kB on average lie on Lustre")));
  EXPECT_THAT(file_system_advice(std::span(files).first(9999), lustre), IsEmpty());
}

}  // namespace
}  // namespace lockstep::testing
