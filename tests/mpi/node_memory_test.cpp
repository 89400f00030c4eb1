// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Memory that the ranks of a host share.
#include "comm/node_memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "comm/agree.h"
#include "support/mpi_world.h"

namespace lockstep {
namespace {

constexpr std::size_t kCount = 1'500'007;

class NodeMemoryTest : public testing::Test {
 protected:
  void SetUp() override {
    host_ = test_world().split_by_host("host");
    ASSERT_EQ(host_->size(), test_world().size()) << "all ranks of the test are on one host";
  }
  std::unique_ptr<NodeMemory> create(std::size_t bytes) {
    return NodeMemory::create(*host_, bytes, no_room_);
  }
  /// Each rank writes its part of 0, 1, 2, ...
  void fill(const NodeMemory& memory) const {
    const auto rank = static_cast<std::size_t>(host_->rank()),
               ranks = static_cast<std::size_t>(host_->size());
    const std::size_t first = kCount * rank / ranks, last = kCount * (rank + 1) / ranks;
    memory.reserve(first * sizeof(std::uint32_t), (last - first) * sizeof(std::uint32_t));
    auto* const values = static_cast<std::uint32_t*>(memory.data());
    for (std::size_t i = first; i < last; ++i) values[i] = static_cast<std::uint32_t>(i) + 1;
  }

  std::unique_ptr<Communicator> host_;
  std::string no_room_;
};

TEST_F(NodeMemoryTest, WhatEachRankWritesIsSeenByAll) {
  const std::unique_ptr<NodeMemory> memory = create(kCount * sizeof(std::uint32_t));
  EXPECT_EQ(no_room_, "");
  if (host_->size() == 1) {
    EXPECT_EQ(memory, nullptr) << "nobody to share with";
    return;
  }
  ASSERT_NE(memory, nullptr);
  EXPECT_EQ(memory->size_bytes(), kCount * sizeof(std::uint32_t));
  fill(*memory);
  NodeMemory::publish(*host_);
  const std::span values(static_cast<const std::uint32_t*>(memory->data()), kCount);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < kCount; ++i) wrong += values[i] == i + 1 ? 0 : 1;
  EXPECT_EQ(wrong, 0U);
  host_->barrier("read");
}

TEST_F(NodeMemoryTest, TheLastRankThatDropsItGivesThePagesBack) {
  if (host_->size() == 1) GTEST_SKIP() << "needs two ranks";
  std::unique_ptr<NodeMemory> memory = create(kCount * sizeof(std::uint32_t));
  ASSERT_NE(memory, nullptr);
  fill(*memory);
  NodeMemory::publish(*host_);
  // MPI's window is mapped to the end, so the place can still be read: zeros where a page was given back.
  const volatile std::uint32_t* const values = static_cast<const std::uint32_t*>(memory->data());
  if (host_->rank() != 0) memory.reset();
  host_->barrier("all but one");
  EXPECT_EQ(values[kCount - 1], kCount) << "one rank still uses it";
  host_->barrier("looked");
  memory.reset();
  host_->barrier("all");
  EXPECT_EQ(values[kCount - 1], 0U);
  EXPECT_EQ(values[0], 0U);
}

TEST_F(NodeMemoryTest, AHostWithoutRoomIsNoError) {
  if (host_->size() == 1) GTEST_SKIP() << "needs two ranks";
  EXPECT_EQ(create(std::size_t{1} << 50), nullptr);
  EXPECT_NE(no_room_.find("GB free, and 1.13e+06 GB are needed"), std::string::npos) << no_room_;
  ::setenv("OMPI_MCA_osc_sm_backing_directory", "/nowhere", 1);
  EXPECT_EQ(create(4096), nullptr);
  EXPECT_NE(no_room_.find("/nowhere cannot be used: No such file"), std::string::npos) << no_room_;
  ::unsetenv("OMPI_MCA_osc_sm_backing_directory");
}

}  // namespace
}  // namespace lockstep
