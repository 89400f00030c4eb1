// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Memory that all ranks of a host see: everyone sees what each has written, and an error of one rank is known
// to all.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <span>

#include "comm/host_memory.h"
#include "support/mpi_world.h"

namespace lockstep {
namespace {

/// Rank r has 1000 (r + 1) bytes.
std::size_t bytes_of(int rank) { return static_cast<std::size_t>(1000 * (rank + 1)); }

TEST(HostMemory, EveryRankSeesTheSegmentsOfAll) {
  Communicator& world = test_world();
  std::string reason;
  const auto memory = HostMemory::create(world, bytes_of(world.rank()), reason);
  ASSERT_NE(memory, nullptr) << reason;
  EXPECT_EQ(memory->segment(world.rank())[bytes_of(world.rank()) - 1], std::byte{0});
  world.barrier("all have looked");
  std::memset(memory->segment(world.rank()), world.rank() + 1, bytes_of(world.rank()));
  world.barrier("all have written");
  for (int rank = 0; rank < world.size(); ++rank) {
    ASSERT_EQ(memory->bytes(rank), bytes_of(rank));
    for (std::size_t i = 0; i < bytes_of(rank); ++i)
      ASSERT_EQ(memory->segment(rank)[i], static_cast<std::byte>(rank + 1)) << "rank " << rank;
  }
  world.barrier("all have read");
}

TEST(HostMemory, OutlivesTheRankThatLeavesIt) {
  Communicator& world = test_world();
  std::string reason;
  auto memory = HostMemory::create(world, 100, reason);
  ASSERT_NE(memory, nullptr) << reason;
  memory->segment(world.rank())[7] = std::byte{42};
  world.barrier("all have written");
  if (world.rank() == 0) memory.reset();
  world.barrier("rank 0 has left");
  if (world.rank() != 0) {
    EXPECT_EQ(memory->segment(0)[7], std::byte{42});
  }
}

/// One copy for all: it is in the segment of rank 0, and each rank takes the pages of its part.
TEST(HostMemory, ASegmentIsFilledByAllRanks) {
  constexpr std::size_t kCount = 1'500'007;
  Communicator& world = test_world();
  const auto rank = static_cast<std::size_t>(world.rank()), ranks = static_cast<std::size_t>(world.size());
  std::string reason;
  auto memory = HostMemory::create(world, rank == 0 ? kCount * sizeof(std::uint32_t) : 0, reason,
                                   HostMemory::Pages::by_reserve);
  ASSERT_NE(memory, nullptr) << reason;
  EXPECT_EQ(memory->bytes(0), kCount * sizeof(std::uint32_t));
  const std::size_t first = kCount * rank / ranks, last = kCount * (rank + 1) / ranks;
  EXPECT_TRUE(memory->reserve(0, first * sizeof(std::uint32_t), (last - first) * sizeof(std::uint32_t)));
  const std::span values(reinterpret_cast<std::uint32_t*>(memory->segment(0)), kCount);
  EXPECT_EQ(values[first], 0U);
  for (std::size_t i = first; i < last; ++i) values[i] = static_cast<std::uint32_t>(i) + 1;
  HostMemory::publish(world);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < kCount; ++i) wrong += values[i] == i + 1 ? 0 : 1;
  EXPECT_EQ(wrong, 0U);
}

/// Segments that this process maps.
int mapped_segments() {
  std::ifstream maps("/proc/self/maps");
  int count = 0;
  for (std::string line; std::getline(maps, line);)
    count += line.find("/memfd:lockstep") == std::string::npos ? 0 : 1;
  return count;
}

/// The last process that unmaps a segment gives its pages back.
TEST(HostMemory, IsUnmappedWithTheObject) {
  Communicator& world = test_world();
  ASSERT_EQ(mapped_segments(), 0);
  std::string reason;
  auto memory = HostMemory::create(world, 100000, reason);
  ASSERT_NE(memory, nullptr) << reason;
  EXPECT_EQ(mapped_segments(), world.size());
  memory.reset();
  EXPECT_EQ(mapped_segments(), 0);
}

TEST(HostMemory, AHostWithoutRoomIsNoError) {
  Communicator& world = test_world();
  for (const auto pages : {HostMemory::Pages::at_once, HostMemory::Pages::by_reserve}) {
    std::string reason;
    const std::size_t bytes = world.rank() == 0 ? std::size_t{1} << 45 : 0;
    EXPECT_EQ(HostMemory::create(world, bytes, reason, pages), nullptr);
    EXPECT_EQ(reason, "rank 0 can't get 35184372092928 bytes of shared memory: Cannot allocate memory");
  }
}

/// The limit of file sizes holds for this memory, too; the last rank has one that is too small.
TEST(HostMemory, AnErrorOfOneRankIsKnownToAll) {
  Communicator& world = test_world();
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  if (world.rank() == world.size() - 1) {
    rlimit small = before;
    small.rlim_cur = 10000;
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  }
  std::string reason;
  const auto memory = HostMemory::create(world, 50000, reason);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(memory, nullptr);
  EXPECT_EQ(reason, "rank " + std::to_string(world.size() - 1) +
                        " can't get 54096 bytes of shared memory: File too large");
}

}  // namespace
}  // namespace lockstep
