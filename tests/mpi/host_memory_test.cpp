// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Memory that all ranks of a host see: everyone sees what each has written, and an error of one rank is known
// to all.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstring>

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
