// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Every call of a Communicator with data that differ per rank and index, in whole messages and in many
// pieces.
#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <vector>

#include "comm/mpi_communicator.h"
#include "core/error.h"
#include "support/mpi_world.h"

namespace lockstep {
namespace {

using Values = std::vector<std::uint32_t>;

Values values(int rank, std::size_t count) {
  Values all(count);
  for (std::size_t i = 0; i < count; ++i)
    all[i] = static_cast<std::uint32_t>(rank + 1) * 1000003U + static_cast<std::uint32_t>(i) * 7U;
  return all;
}

std::size_t bytes(const Values& values) { return values.size() * sizeof(std::uint32_t); }

// The parameter is the maximum message size: the default, or so small that every message is split.
class Collectives : public testing::TestWithParam<std::size_t> {
 protected:
  void SetUp() override {
    group_ = test_world().duplicate("collectives");
    dynamic_cast<MpiCommunicator&>(*group_).set_max_message_bytes(GetParam());
    rank_ = group_->rank();
    size_ = group_->size();
  }
  std::unique_ptr<Communicator> group_;
  int rank_ = 0, size_ = 0;
};
INSTANTIATE_TEST_SUITE_P(MessageBytes, Collectives, testing::Values(std::size_t{1} << 30, std::size_t{1000}));

TEST_P(Collectives, ExchangeAroundARing) {
  const int right = (rank_ + 1) % size_, left = (rank_ + size_ - 1) % size_;
  for (const std::size_t count : {0, 1, 249, 250, 251, 5000}) {
    // Each rank sends a different length.
    const Values out = values(rank_, count + static_cast<std::size_t>(rank_));
    Values in(count + static_cast<std::size_t>(left));
    group_->exchange(out.data(), bytes(out), right, in.data(), bytes(in), left, "ring");
    EXPECT_EQ(in, values(left, in.size()));
  }
}

TEST_P(Collectives, SendAndReceive) {
  if (size_ == 1) GTEST_SKIP() << "needs two ranks";
  const Values expected = values(5, 3000);
  if (rank_ == 0) group_->send(expected.data(), bytes(expected), size_ - 1, "one message");
  if (rank_ == size_ - 1) {
    Values in(expected.size());
    group_->receive(in.data(), bytes(in), 0, "one message");
    EXPECT_EQ(in, expected);
  }
}

TEST_P(Collectives, ExchangePieces) {
  const int peer = (rank_ ^ 1) < size_ ? rank_ ^ 1 : rank_;
  for (const std::size_t piece : {512U, 4096U})
    for (const std::size_t count : {0, 1, 128, 1000, 20000}) {
      const Values out = values(rank_, count), expected = values(peer, count);
      Values ring(Communicator::kRingPieces * piece / sizeof(std::uint32_t)), in(count);
      std::size_t reached = 0;
      group_->exchange_pieces(
          out.data(), bytes(out), bytes(in), peer, ring.data(), piece,
          [&](std::size_t offset, const void* data, std::size_t length) {
            EXPECT_EQ(offset, reached);
            EXPECT_LE(length, piece);
            reached += length;
            std::copy_n(static_cast<const std::uint32_t*>(data), length / sizeof(std::uint32_t),
                        in.begin() + static_cast<std::ptrdiff_t>(offset / sizeof(std::uint32_t)));
          },
          "pieces");
      EXPECT_EQ(reached, bytes(in));
      EXPECT_EQ(in, expected);
    }
}

TEST_P(Collectives, ExchangeManyKeepsMessageOrder) {
  std::vector<Values> out, in;
  std::vector<OutMessage> sends;
  std::vector<InMessage> receives;
  for (int peer = 0; peer < size_; ++peer)
    for (int k = 0; k < 3; ++k) {
      out.push_back(values(100 * rank_ + 10 * peer + k, 300U * static_cast<unsigned>(k)));
      in.emplace_back(300U * static_cast<unsigned>(k));
    }
  for (int i = 0; i < 3 * size_; ++i) {
    const auto at = static_cast<std::size_t>(i);
    sends.push_back({out[at].data(), bytes(out[at]), i / 3});
    receives.push_back({in[at].data(), bytes(in[at]), i / 3});
  }
  group_->exchange_many(sends, receives, "many");
  for (int i = 0; i < 3 * size_; ++i)
    EXPECT_EQ(in[static_cast<std::size_t>(i)],
              values(100 * (i / 3) + 10 * rank_ + i % 3, 300U * static_cast<unsigned>(i % 3)));
}

TEST_P(Collectives, Allgather) {
  for (const std::size_t count : {0, 1, 249, 250, 251, 3000}) {
    const Values mine = values(rank_, count);
    Values all(count * static_cast<std::size_t>(size_)), expected;
    for (int rank = 0; rank < size_; ++rank) {
      const Values part = values(rank, count);
      expected.insert(expected.end(), part.begin(), part.end());
    }
    group_->allgather(mine.data(), bytes(mine), all.data(), "gather");
    EXPECT_EQ(all, expected);
    // In place.
    Values place(all.size());
    const auto own = static_cast<std::ptrdiff_t>(count * static_cast<std::size_t>(rank_));
    std::copy(mine.begin(), mine.end(), place.begin() + own);
    group_->allgather(place.data() + own, bytes(mine), place.data(), "gather in place");
    EXPECT_EQ(place, expected);
  }
}

TEST_P(Collectives, BroadcastFromEveryRoot) {
  for (int root = 0; root < size_; ++root)
    for (const std::size_t count : {0, 1, 777}) {
      Values data = values(rank_, count);
      group_->broadcast(data.data(), bytes(data), root, "broadcast");
      EXPECT_EQ(data, values(root, count));
    }
}

TEST_P(Collectives, FastAllreduce) {
  const std::size_t count = 1001;
  std::vector<float> data(count);
  for (std::size_t i = 0; i < count; ++i) data[i] = static_cast<float>(rank_ + 1) + static_cast<float>(i);
  group_->allreduce_sum_fast(data.data(), count, "fast");
  for (std::size_t i = 0; i < count; ++i)
    ASSERT_EQ(data[i], static_cast<float>(size_ * (size_ + 1) / 2) +
                           static_cast<float>(size_) * static_cast<float>(i));
}

TEST_P(Collectives, BarrierAndHosts) {
  group_->barrier("barrier");
  const auto host = group_->split_by_host("host");
  EXPECT_GE(host->size(), 1);
  EXPECT_LE(host->size(), size_);
  int lowest = rank_;
  host->broadcast(&lowest, sizeof lowest, 0, "lowest of the host");
  EXPECT_LE(lowest, rank_);
}

TEST(Communicators, CountBytesAndTime) {
  const auto group = test_world().duplicate("counted");
  const std::uint64_t ranks = static_cast<std::uint64_t>(group->size());
  EXPECT_EQ(group->bytes_moved(), 0U);
  std::vector<char> mine(100), all(100 * ranks);
  group->allgather(mine.data(), mine.size(), all.data(), "counted");
  EXPECT_EQ(group->bytes_moved(), 200 * (ranks - 1));
  EXPECT_GT(group->seconds_waited(), 0);
  EXPECT_LT(group->seconds_waited(), 60);
}

TEST(Communicators, ShortMessageIsAnError) {
  const auto group = test_world().duplicate("short message");
  if (group->size() < 2) GTEST_SKIP() << "needs two ranks";
  const std::vector<char> out(10);
  std::vector<char> in(20);
  if (group->rank() == 0) group->send(out.data(), out.size(), 1, "short");
  if (group->rank() == 1) {
    try {
      group->receive(in.data(), in.size(), 0, "short");
      FAIL() << "a message that is too short was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::communication);
      EXPECT_NE(std::string(error.what()).find("expected 20 bytes from rank 0 and got 10"), std::string::npos)
          << error.what();
    }
  }
}

TEST(Communicators, LongMessageIsAnMpiError) {
  const auto group = test_world().duplicate("long message");
  if (group->size() < 2) GTEST_SKIP() << "needs two ranks";
  const std::vector<char> out(20);
  std::vector<char> in(10);
  if (group->rank() == 0) group->send(out.data(), out.size(), 1, "long");
  if (group->rank() == 1) {
    try {
      group->receive(in.data(), in.size(), 0, "long");
      FAIL() << "a message that is too long was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::communication);
      EXPECT_NE(std::string(error.what()).find("essage truncated"), std::string::npos) << error.what();
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("'long' on rank 1 of 'long message'"), std::string::npos)
          << error.what();
    }
  }
}

TEST(Communicators, RejectsInvalidPeers) {
  char byte = 0;
  EXPECT_THROW(test_world().broadcast(&byte, 1, test_world().size(), "no such rank"), Error);
  EXPECT_THROW(test_world().send(&byte, 1, -1, "no such rank"), Error);
}

}  // namespace
}  // namespace lockstep
