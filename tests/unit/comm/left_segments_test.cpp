// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Which files are shared memory that nobody uses any more.
#include "comm/left_segments.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/cpu.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

class LeftSegments : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }

  std::string make(const std::string& name, std::size_t bytes = 4096) const {
    const std::string path = (folder_ / name).string();
    std::ofstream(path) << std::string(bytes, 'x');
    return path;
  }
  std::vector<std::string> found(double settled_seconds = 0) const {
    std::vector<std::string> paths;
    for (const LeftSegment& segment : left_segments({folder_.string()}, settled_seconds))
      paths.push_back(segment.path);
    return paths;
  }

  const fs::path folder_ = fs::path(testing::TempDir()) / ("segments-" + std::to_string(::getpid()));
  const std::string of_host_ =
      "vader_segment." + host_name().substr(0, host_name().find('.')) + ".0.5c4b0001.";
};

TEST(SegmentName, IsOfALibraryAndOfThisHost) {
  for (const char* name : {"vader_segment.n01.1000.5c4b0001.0", "sm_segment.n01.cluster.0.1.0", "nccl-vzIpS6",
                           "ucx_shm_posix_2e841ba5"})
    EXPECT_TRUE(is_segment_name(name, "n01.cluster")) << name;
  for (const char* name : {"vader_segment.n02.1000.5c4b0001.0", "vader_segment.n011.0.1.0", "nccl-", "sem.x",
                           "pulse-shm-1", "vader_segment", ""})
    EXPECT_FALSE(is_segment_name(name, "n01.cluster")) << name;
}

TEST(SegmentFolders, OpenMpiMayHaveAnother) {
  EXPECT_EQ(segment_folders([](const char*) -> const char* { return nullptr; }),
            std::vector<std::string>{"/dev/shm"});
  const auto folders = segment_folders([](const char* name) -> const char* {
    return std::string_view(name) == "OMPI_MCA_btl_vader_backing_directory" ? "/tmp/a" : "/dev/shm";
  });
  EXPECT_EQ(folders, (std::vector<std::string>{"/dev/shm", "/tmp/a"}));
}

TEST_F(LeftSegments, AreFilesThatNoProcessHasMapped) {
  const std::string left = make(of_host_ + "0"), used = make(of_host_ + "1");
  make("vader_segment.another-host.0.5c4b0001.0");
  make("notes.txt");
  fs::create_symlink(left, folder_ / (of_host_ + "2"));
  const int file = ::open(used.c_str(), O_RDWR);
  void* const memory = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  ASSERT_NE(memory, MAP_FAILED);
  EXPECT_EQ(found(), std::vector<std::string>{left});
  ::munmap(memory, 4096);
  EXPECT_EQ(found(), (std::vector<std::string>{left, used}));
}

TEST_F(LeftSegments, YoungOnesMayBeAboutToBeMapped) {
  const std::string left = make(of_host_ + "0");
  EXPECT_TRUE(found(kSettledSeconds).empty());
  fs::last_write_time(left, fs::file_time_type::clock::now() - std::chrono::seconds(61));
  EXPECT_EQ(found(kSettledSeconds), std::vector<std::string>{left});
}

TEST_F(LeftSegments, AreNamedAndRemoved) {
  const std::string left = make(of_host_ + "0", 2'000'000);
  std::vector<LeftSegment> segments = left_segments({folder_.string(), "/no/such/folder"}, 0);
  EXPECT_EQ(segments_text(segments), "1 segment of shared memory, 2.0 MB: " + left);
  segments.push_back({"/no/such/folder/nccl-1", 1});
  const std::vector<LeftSegment> kept = remove_segments(segments);
  ASSERT_EQ(kept.size(), 1U);
  EXPECT_EQ(kept[0].path, "/no/such/folder/nccl-1");
  EXPECT_FALSE(fs::exists(left));
}

/// A folder of processes as /proc has it.
class Processes : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(proc_ / "self" / "ns");
    in_namespace("pid:[4026531836]");
    write("self/mounts", "sysfs /sys sysfs rw 0 0\nproc /proc proc rw,nosuid 0 0\n");
    write("17/maps", "");
    write("17/status", own_status());
    write("uptime", "1");
  }
  void TearDown() override { fs::remove_all(proc_); }

  static std::string own_status() {
    return "Name:\ta\nUid:\t1\t" + std::to_string(::geteuid()) + "\t1\t1\nGid:\t0\n";
  }
  void in_namespace(const std::string& name) const {
    fs::remove(proc_ / "self" / "ns" / "pid");
    fs::create_symlink(name, proc_ / "self" / "ns" / "pid");
  }
  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((proc_ / name).parent_path());
    std::ofstream(proc_ / name) << text;
  }
  bool all_seen() const { return sees_all_processes(proc_.string()); }

  const fs::path proc_ = fs::path(testing::TempDir()) / ("proc-" + std::to_string(::getpid()));
};

TEST_F(Processes, AreAllSeenInTheFirstNamespaceAlone) {
  EXPECT_TRUE(all_seen());
  in_namespace("pid:[4026532561]");
  EXPECT_FALSE(all_seen()) << "a container: others may share /dev/shm";
}

TEST_F(Processes, AreNotAllSeenWhereSomeAreHidden) {
  write("self/mounts", "proc /proc proc rw,hidepid=2 0 0\n");
  EXPECT_FALSE(all_seen());
  write("self/mounts", "proc /proc proc rw,hidepid=0 0 0\n");
  EXPECT_TRUE(all_seen());
  write("self/mounts", "");
  EXPECT_FALSE(all_seen());
}

TEST_F(Processes, MustShowTheirMemoryUnlessTheyAreOfOthers) {
  write("18/status", "Name:\tb\nUid:\t77\t77\t77\t77\n");
  EXPECT_TRUE(all_seen()) << "a process of another user, without maps that can be read";
  fs::remove(proc_ / "17" / "maps");
  EXPECT_FALSE(all_seen()) << "one of this user";
}

TEST(SharedMemory, IsWhatNoOtherSystemHas) {
  const auto kept = in_shared_memory({{"/dev/shm/nccl-1", 1}, {"/tmp/nccl-2", 1}, {"/dev/shm/a/nccl-3", 1}});
  ASSERT_EQ(kept.size(), 1U);
  EXPECT_EQ(kept[0].path, "/dev/shm/nccl-1");
}

}  // namespace
}  // namespace lockstep
