// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The gradient reducer with communicators that fail, hang or have one rank; the self communicator.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <thread>

#include "comm/gradient_reducer.h"
#include "comm/self_communicator.h"
#include "comm/vector_add.h"
#include "core/error.h"
#include "core/range.h"

namespace lockstep {
namespace {

// Rank 0 of two. Every transfer calls `transfer`.
class FakeCommunicator : public Communicator {
 public:
  explicit FakeCommunicator(std::function<void()> transfer)
      : Communicator(0, 2, "fake"), transfer_(std::move(transfer)) {}
  std::unique_ptr<Communicator> duplicate(std::string) override {
    return std::make_unique<FakeCommunicator>(transfer_);
  }
  std::unique_ptr<Communicator> split_by_host(std::string) override { return nullptr; }
  [[noreturn]] void abort(int code) noexcept override { std::_Exit(code); }

 private:
  void do_exchange(const void*, std::size_t, int, void*, std::size_t, int, const char*) override {
    transfer_();
  }
  void do_exchange_pieces(const void*, std::size_t, std::size_t, int, void*, std::size_t, Arrived,
                          const char*) override {
    transfer_();
  }
  void do_exchange_many(std::span<const OutMessage>, std::span<const InMessage>, const char*) override {
    transfer_();
  }
  void do_allgather(const void*, std::size_t, void*, const char*) override {}
  void do_broadcast(void*, std::size_t, int, const char*) override {}
  void do_barrier(const char*) override {}
  void do_allreduce_sum_fast(float*, std::size_t, const char*) override { transfer_(); }

  std::function<void()> transfer_;
};

const std::vector<Range> kTwoBuckets{{0, 60}, {60, 100}};

TEST(GradientReducer, WaitAllRethrowsThreadErrors) {
  std::atomic<int> transfers{0};
  FakeCommunicator fake([&] {
    ++transfers;
    throw Error(ErrorKind::communication, "the network is gone");
  });
  GradientReducer reducer(fake, nullptr, 2, 100, kTwoBuckets, {.overlap = true});
  for (int step = 0; step < 2; ++step) {
    reducer.start(0);
    reducer.start(1);
    try {
      reducer.wait_all();
      FAIL() << "the error was lost";
    } catch (const Error& error) {
      EXPECT_EQ(error.what_happened(), "the network is gone");
    }
    EXPECT_EQ(transfers, step + 1) << "after an error the other buckets are skipped";
  }
}

TEST(GradientReducer, StartThrowsWithoutOverlap) {
  FakeCommunicator fake([] { throw Error(ErrorKind::communication, "the network is gone"); });
  GradientReducer reducer(fake, nullptr, 2, 100, kTwoBuckets);
  EXPECT_THROW(reducer.start(0), Error);
}

TEST(GradientReducer, DestructorDoesNotWaitForATransfer) {
  static std::atomic<bool> go{false}, gone{false};  // static: the thread may outlive this test
  FakeCommunicator fake([] {
    while (!go) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    gone = true;
  });
  {
    GradientReducer reducer(fake, nullptr, 2, 100, kTwoBuckets, {.overlap = true});
    reducer.start(0);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  EXPECT_FALSE(gone) << "the destructor waited for the transfer";
  go = true;
  while (!gone) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

TEST(GradientReducer, DestructorJoinsAnIdleThread) {
  FakeCommunicator fake([] {});
  const GradientReducer reducer(fake, nullptr, 2, 100, kTwoBuckets, {.overlap = true});
  EXPECT_TRUE(reducer.overlaps());
}

TEST(GradientReducer, MisuseIsABug) {
  SelfCommunicator self;
  GradientReducer reducer(self, nullptr, 4, 100, kTwoBuckets);
  reducer.start(0);
  EXPECT_THROW(reducer.start(0), Error);
  EXPECT_THROW(reducer.wait_all(), Error);
  reducer.start(1);
  EXPECT_NO_THROW(reducer.wait_all());
  using Buckets = std::vector<Range>;
  EXPECT_THROW(GradientReducer(self, nullptr, 4, 100, Buckets{{0, 60}}), Error);
  EXPECT_THROW(GradientReducer(self, nullptr, 4, 100, Buckets{{0, 60}, {61, 100}}), Error);
}

TEST(GradientReducer, OneRankCopiesNothing) {
  SelfCommunicator self;
  GradientReducer reducer(self, nullptr, 5, 100, kTwoBuckets, {.overlap = true});
  EXPECT_FALSE(reducer.overlaps());
  ASSERT_EQ(reducer.num_partials(), 1);
  EXPECT_EQ(reducer.partial_subtree(0), (Subtree{0, 5}));
  EXPECT_EQ(reducer.result(), reducer.partial(0));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(reducer.result()) % 64, 0U);
  reducer.partial(0)[7] = 3;
  reducer.start(1);
  reducer.start(0);
  reducer.wait_all();
  EXPECT_EQ(reducer.result()[7], 3);
  EXPECT_EQ(reducer.memory_bytes(), 100 * sizeof(float));
  EXPECT_EQ(reducer.bytes_per_step(), 0);
}

TEST(SelfCommunicator, MovesData) {
  SelfCommunicator self;
  int out = 7, in = 0;
  self.exchange(&out, sizeof out, 0, &in, sizeof in, 0, "self");
  EXPECT_EQ(in, 7);
  in = 0;
  self.allgather(&out, sizeof out, &in, "self");
  EXPECT_EQ(in, 7);
  self.broadcast(&in, sizeof in, 0, "self");
  self.barrier("self");
  EXPECT_THROW(self.exchange(&out, sizeof out, 0, &in, 1, 0, "self"), Error);
  EXPECT_THROW(self.exchange(&out, sizeof out, 1, &in, sizeof in, 0, "self"), Error);
  EXPECT_EQ(self.duplicate("twin")->size(), 1);
  EXPECT_EQ(self.split_by_host("host")->rank(), 0);
}

TEST(VectorAdd, EveryLengthAndAlignment) {
  for (int offset = 0; offset < 17; ++offset)
    for (int count = 0; count < 70; ++count) {
      std::vector<float> into(100, -1), from(100, 0.25F);
      for (int i = 0; i < 100; ++i) from[static_cast<std::size_t>(i)] += static_cast<float>(i);
      vector_add(into.data() + offset, from.data() + 3, count);
      for (int i = 0; i < 100; ++i) {
        const bool inside = offset <= i && i < offset + count;
        EXPECT_EQ(into[static_cast<std::size_t>(i)],
                  inside ? static_cast<float>(i - offset + 3) - 0.75F : -1.0F);
      }
    }
}

/// Only a sum along the tree rounds or shares the update.
TEST(GradientReducerOptions, SayWhatTheirSumDoes) {
  using Nodes = HostTreeSum::Nodes;
  EXPECT_FALSE(GradientReducerOptions{}.compresses());
  EXPECT_TRUE(GradientReducerOptions{.sum = HostTreeSum{.nodes = Nodes::rounded}}.compresses());
  EXPECT_TRUE(GradientReducerOptions{.sum = HostTreeSum{.nodes = Nodes::rounded_with_feedback}}.compresses());
  EXPECT_TRUE(GradientReducerOptions{.sum = DeviceTreeSum{.compress = true}}.compresses());
  EXPECT_FALSE(GradientReducerOptions{.sum = FastSum{}}.compresses());
  const auto ownership =
      std::make_shared<const Ownership>(kTwoBuckets, 2, 2, [](std::int64_t i) { return i; });
  EXPECT_EQ(GradientReducerOptions{.sum = HostTreeSum{.ownership = ownership}}.ownership(), ownership);
  EXPECT_EQ(GradientReducerOptions{.sum = FastSum{}}.ownership(), nullptr);
}

}  // namespace
}  // namespace lockstep
