// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Damaged checkpoints: flipped bytes, truncation at every length, a full disk, a write that fails in the
// middle.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <fstream>
#include <functional>

#include "checkpoint_testing.h"
#include "io/atomic_file.h"
#include "io/checkpoint.h"
#include "io/checkpoint_store.h"
#include "io/hdf5_attribute.h"

namespace lockstep {
namespace {

using testing::FileSizeLimit;
using ::testing::HasSubstr;
using testing::CheckpointFolder;
using testing::test_header;
using testing::test_tensors;
using testing::TestTensors;
using testing::write_file;

/// Opens and verifies the file; returns whether that succeeded. Damage must be an Error(checkpoint) that
/// names the file.
bool intact(const std::string& path, const std::string& digest) {
  try {
    const CheckpointFile file(path);
    file.verify();
    // Undetected changes must be harmless.
    EXPECT_EQ(file.header().digest, digest);
    EXPECT_EQ(file.header().config, test_header().config);
    EXPECT_EQ(file.header().created, "2020-01-02T03:04:05Z");
    EXPECT_EQ(file.header().lockstep_version, test_header().lockstep_version);
    EXPECT_EQ(file.entries().size(), 5U);
    return true;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::checkpoint) << error.what();
    EXPECT_THAT(error.what(), HasSubstr(path));
    return false;
  }
}

void write_byte(const std::string& path, std::size_t at, char byte) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(at)).put(byte);
  ASSERT_TRUE(file.flush()) << path;
}

struct Sample {
  std::string digest, bytes;
};

Sample write_sample(const std::string& path) {
  const TestTensors tensors = test_tensors();
  CheckpointHeader header = test_header();
  header.created = "2020-01-02T03:04:05Z";
  write_checkpoint(path, header, tensors.get());
  return {checkpoint_digest(header, tensors.get()), read_whole_file(path)};
}

class FlippedByte : public ::testing::TestWithParam<int> {};

TEST_P(FlippedByte, IsDetectedOrHarmless) {
  const CheckpointFolder folder;
  const std::string path = folder / "a.h5";
  const Sample sample = write_sample(path);
  ASSERT_TRUE(intact(path, sample.digest));
  std::size_t unnoticed = 0;
  for (std::size_t at = 0; at < sample.bytes.size(); ++at) {
    write_byte(path, at, static_cast<char>(sample.bytes[at] ^ GetParam()));
    if (intact(path, sample.digest)) ++unnoticed;
    write_byte(path, at, sample.bytes[at]);
    if (HasFailure()) FAIL() << "byte " << at << " of " << sample.bytes.size();
  }
  RecordProperty("bytes", static_cast<int>(sample.bytes.size()));
  RecordProperty("unnoticed", static_cast<int>(unnoticed));
  // Only space that HDF5 allocated and never used may differ undetected.
  EXPECT_LT(unnoticed, sample.bytes.size() / 2);
}

INSTANTIATE_TEST_SUITE_P(Patterns, FlippedByte, ::testing::Values(0x01, 0xFF));

TEST(CheckpointDamage, EveryByteOfATensorMatters) {
  const CheckpointFolder folder;
  const std::string path = folder / "a.h5";
  const Sample sample = write_sample(path);
  const TestTensors tensors = test_tensors();
  const Tensor& bias = tensors.get()[1].tensor;
  const std::string needle(static_cast<const char*>(bias.raw()), bias.size_bytes());
  const std::size_t begin = sample.bytes.find(needle);
  ASSERT_NE(begin, std::string::npos);
  for (std::size_t at = begin; at < begin + needle.size(); ++at) {
    write_byte(path, at, static_cast<char>(sample.bytes[at] ^ 1));
    try {
      CheckpointFile(path).verify();
      ADD_FAILURE() << "byte " << at;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(),
                  AllOf(HasSubstr(path), HasSubstr("dataset variables/conv1/bias"), HasSubstr("checksum")));
    }
    write_byte(path, at, sample.bytes[at]);
  }
}

TEST(CheckpointDamage, DetectsTruncationAtEveryLength) {
  const CheckpointFolder folder;
  const std::string path = folder / "a.h5";
  const Sample sample = write_sample(path);
  for (std::size_t length = 0; length < sample.bytes.size(); ++length) {
    write_file(path, sample.bytes.substr(0, length));
    ASSERT_FALSE(intact(path, sample.digest)) << length << " of " << sample.bytes.size();
  }
  write_file(path, sample.bytes);
  EXPECT_TRUE(intact(path, sample.digest));
}

/// Changes a file through HDF5 itself, so that its structures and checksums are valid.
void edit(const std::string& path, const std::function<void(hid_t, const Hdf5Context&)>& change) {
  const Hdf5Context context{ErrorKind::bug, path, ""};
  const Hdf5Lock lock;
  const Hdf5Handle access = hdf5_access_properties(context);
  Hdf5Handle file(hdf5_checked(H5Fopen(path.c_str(), H5F_ACC_RDWR, access.get()), context, "open"), H5Fclose);
  change(file.get(), context);
  hdf5_checked(file.close(), context, "close");
}

std::string complaint(const std::string& path) {
  try {
    CheckpointFile(path).verify();
    return "none";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::checkpoint);
    return error.what();
  }
}

TEST(CheckpointDamage, DetectsEditsByOtherPrograms) {
  const CheckpointFolder folder;
  const std::string path = folder / "a.h5";
  write_sample(path);
  edit(path, [](hid_t file, const Hdf5Context& context) {
    hdf5_checked(H5Ldelete(file, "variables/conv1/bias", H5P_DEFAULT), context, "delete");
  });
  EXPECT_THAT(complaint(path), AllOf(HasSubstr(path), HasSubstr("digest")));

  write_sample(path);
  edit(path, [](hid_t file, const Hdf5Context& context) {
    hdf5_checked(H5Lmove(file, "state/loss_scale", file, "state/loss", H5P_DEFAULT, H5P_DEFAULT), context,
                 "rename");
  });
  EXPECT_THAT(complaint(path), AllOf(HasSubstr(path), HasSubstr("digest")));

  write_sample(path);
  edit(path, [](hid_t file, const Hdf5Context& context) {  // the digest does not cover it
    hdf5_checked(H5Adelete(file, "config"), context, "delete");
    write_attribute(file, "config", std::string("seed: 2\n"), context);
  });
  EXPECT_THAT(complaint(path), AllOf(HasSubstr(path), HasSubstr("the header's checksum is wrong")));

  write_sample(path);
  edit(path, [](hid_t file, const Hdf5Context& context) {
    hdf5_checked(H5Adelete(file, "version"), context, "delete");
    write_attribute(file, "version", std::int64_t{2}, context);
  });
  EXPECT_THAT(complaint(path), AllOf(HasSubstr(path), HasSubstr("version 2")));
}

/// The newest of two checkpoints of a run is damaged. It must be skipped with a reason, and the older one
/// used.
class DamagedNewest : public ::testing::Test {
 protected:
  DamagedNewest() {
    TestTensors tensors = test_tensors();
    tensors.add("variables/dense/kernel", DType::f32, {70, 100});
    for (int step : {1, 2}) store_.save(test_header(step), tensors.get());
    bytes_ = read_whole_file(store_.path_of(2));
    const Tensor& kernel = tensors.get().back().tensor;
    const std::string needle(static_cast<const char*>(kernel.raw()), kernel.size_bytes());
    kernel_begin_ = bytes_.find(needle);
    kernel_end_ = kernel_begin_ + needle.size();
  }
  /// The message about the newest checkpoint with these bytes; empty if it was used.
  std::string said_of(const std::string& bytes) {
    write_file(store_.path_of(2), bytes);
    std::vector<std::string> damaged;
    const std::optional<std::string> used = store_.newest_intact(&damaged);
    EXPECT_EQ(used, store_.path_of(damaged.empty() ? 2 : 1));
    EXPECT_LE(damaged.size(), 1U);
    return damaged.empty() ? "" : damaged.front();
  }

  CheckpointFolder folder_;
  CheckpointStore store_{folder_.path(), 0};
  std::string bytes_;
  std::size_t kernel_begin_ = 0, kernel_end_ = 0;
};

TEST_F(DamagedNewest, FlippedByteFallsBackToTheOlderOne) {
  ASSERT_NE(kernel_begin_, std::string::npos);
  ASSERT_EQ(said_of(bytes_), "");
  for (std::size_t at = 0; at < bytes_.size(); at += 13) {
    std::string flipped = bytes_;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x40);
    const std::string said = said_of(flipped);
    if (at >= kernel_begin_ && at < kernel_end_) {
      ASSERT_THAT(said, HasSubstr("step-00000002.h5, dataset variables/dense/kernel: ")) << at;
    } else if (!said.empty()) {
      ASSERT_THAT(said, HasSubstr("step-00000002.h5")) << at;
    }
  }
}

TEST_F(DamagedNewest, TruncationFallsBackToTheOlderOne) {
  ASSERT_GT(bytes_.size(), 6 * 4096U);
  for (std::size_t length = 0; length < bytes_.size(); length += 4096)
    ASSERT_THAT(said_of(bytes_.substr(0, length)), HasSubstr("step-00000002.h5")) << length;
  EXPECT_EQ(said_of(bytes_), "");
}

/// A file system of `megabytes`, unmounted at the end.
class SmallDisk {
 public:
  SmallDisk(const std::string& folder, int megabytes) : folder_(folder) {
    mounted_ =
        ::mount("lockstep-test", folder.c_str(), "tmpfs", 0, fmt::format("size={}m", megabytes).c_str()) == 0;
  }
  ~SmallDisk() {
    if (mounted_) ::umount2(folder_.c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  bool mounted() const { return mounted_; }

 private:
  std::string folder_;
  bool mounted_ = false;
};

TEST(CheckpointDamage, FullDiskKeepsTheOlderCheckpoint) {
  const CheckpointFolder folder;
  const SmallDisk disk(folder.path(), 4);
  if (!disk.mounted()) GTEST_SKIP() << "mounting a small file system needs to be root";
  TestTensors fits, large;
  fits.add("variables/a", DType::f32, {200'000});
  large.add("variables/a", DType::f32, {1'000'000});
  write_checkpoint(folder / "a.h5", test_header(1), fits.get());
  try {
    write_checkpoint(folder / "b.h5", test_header(2), large.get());
    FAIL() << "written to a full disk";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::checkpoint);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("b.h5"), HasSubstr("disk is full"), HasSubstr("needs 4.1 MB")));
  }
  EXPECT_THAT(folder.names(), ::testing::ElementsAre("a.h5"));
  CheckpointFile(folder / "a.h5").verify();
  for (int step = 3; step < 23; ++step)
    write_checkpoint(folder / "c.h5", test_header(step), fits.get());  // no leak
  CheckpointFile(folder / "c.h5").verify();
}

// On a file system that cannot reserve space, HDF5's writing fails in the middle. A limit on the size of
// files has the same effect.
TEST(CheckpointDamage, WriteErrorInTheMiddle) {
  const CheckpointFolder folder;
  TestTensors fits, large;
  fits.add("variables/a", DType::f32, {2'000});
  large.add("variables/a", DType::f32, {30'000});
  large.add("variables/b", DType::f32, {30'000});
  for (int i = 0; i < 2'000; ++i) large.add(fmt::format("variables/small{}/bias", i), DType::f32, {3});
  write_checkpoint(folder / "a.h5", test_header(1), fits.get());

  for (rlim_t limit : {rlim_t{0}, rlim_t{100}, rlim_t{50'000}, rlim_t{150'000}, rlim_t{240'500},
                       rlim_t{500'000}, rlim_t{1'000'000}}) {
    std::string message;
    try {
      const FileSizeLimit limited(limit);
      write_checkpoint(folder / "b.h5", test_header(2), large.get());
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::checkpoint);
      message = error.what();
    }
    EXPECT_THAT(message, AllOf(HasSubstr("b.h5"), HasSubstr("File too large"))) << limit;
    EXPECT_THAT(folder.names(), ::testing::ElementsAre("a.h5")) << limit;
    CheckpointFile(folder / "a.h5").verify();
  }
  write_checkpoint(folder / "b.h5", test_header(2), large.get());
  CheckpointFile(folder / "b.h5").verify();
}

TEST(CheckpointDamage, MissingFolder) {
  try {
    write_checkpoint("/nonexistent/a.h5", test_header(), test_tensors().get());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::checkpoint);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("/nonexistent/a.h5"), HasSubstr("No such file")));
  }
}

}  // namespace
}  // namespace lockstep
