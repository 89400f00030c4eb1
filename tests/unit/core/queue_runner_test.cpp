// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "core/queue_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace lockstep {
namespace {

using testing::HasSubstr;

constexpr double kLong = 60;  // seconds; only a failing test waits that long

/// Pops until the end of the input. Returns the number of elements.
template <typename T>
int drain(BoundedQueue<T>& queue) {
  int count = 0;
  try {
    for (;; ++count) queue.pop(kLong);
  } catch (const EndOfInput&) {
  }
  return count;
}

TEST(QueueRunner, LastThreadClosesTheQueue) {
  for (const int threads : {1, 3}) {
    BoundedQueue<int> queue("numbers", 4);
    Coordinator coordinator;
    std::atomic<int> next{0};
    std::set<int> numbers;
    std::mutex mutex;
    const QueueRunner runner(coordinator, queue, "reader", threads, [&](int thread) {
      {
        const std::lock_guard lock(mutex);
        numbers.insert(thread);
      }
      const int mine = next++;
      if (mine >= 100 && mine % 2 == 0) return false;
      if (mine >= 100) throw EndOfInput("numbers");
      queue.push(mine, kNoLimit);
      return true;
    });
    EXPECT_EQ(drain(queue), 100);
    EXPECT_FALSE(coordinator.should_stop()) << "the end of the input does not stop the coordinator";
    coordinator.join(kLong);
    EXPECT_EQ(static_cast<int>(numbers.size()), threads);
  }
}

TEST(QueueRunner, ErrorCancelsTheQueue) {
  BoundedQueue<int> queue("numbers", 2);
  Coordinator coordinator;
  const QueueRunner runner(coordinator, queue, "reader", 2, [&](int thread) {
    if (thread == 1) throw Error(ErrorKind::data, "torn");
    queue.push(1, kNoLimit);
    return true;
  });
  EXPECT_THROW(drain(queue), Cancelled);
  EXPECT_TRUE(coordinator.should_stop());
  try {
    coordinator.join(kLong);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "thread 'reader 1': torn");
  }
}

TEST(QueueRunner, ErrorOfTheLastThreadCancelsTheQueue) {
  BoundedQueue<int> queue("numbers", 2);
  Coordinator coordinator;
  const QueueRunner runner(coordinator, queue, "reader", 1, [&](int) -> bool { throw 1; });
  EXPECT_THROW(drain(queue), Cancelled);
  EXPECT_THROW(coordinator.join(kLong), Error);
}

TEST(QueueRunner, StopUnblocksAllThreads) {
  BoundedQueue<int> full("full", 1), empty("empty", 1);
  Coordinator coordinator;
  const QueueRunner producers(coordinator, full, "producer", 3, [&](int) {
    full.push(1, kNoLimit);
    return true;
  });
  const QueueRunner copiers(coordinator, empty, "copier", 2, [&](int) {
    empty.pop(kNoLimit);  // this queue stays empty
    return true;
  });
  while (full.size() < 1) std::this_thread::yield();
  coordinator.request_stop();
  coordinator.join(kLong);
  EXPECT_TRUE(coordinator.running_threads().empty());
}

TEST(QueueRunner, EndOfInputPassesThroughAChainOfQueues) {
  BoundedQueue<int> names("names", 2), samples("samples", 3);
  Coordinator coordinator;
  std::atomic<int> next{0};
  const QueueRunner first(coordinator, names, "names", 1, [&](int) {
    names.push(next, kNoLimit);
    return ++next < 10;
  });
  const QueueRunner second(coordinator, samples, "reader", 3, [&](int) {
    const int name = names.pop(kNoLimit);
    for (int i = 0; i < 5; ++i) samples.push(name * 5 + i, kNoLimit);
    return true;
  });
  EXPECT_EQ(drain(samples), 50);
  coordinator.join(kLong);
}

TEST(QueueRunner, EndsAtOnceIfStartedAfterAStop) {
  BoundedQueue<int> queue("numbers", 1);
  Coordinator coordinator;
  coordinator.request_stop();
  const QueueRunner runner(coordinator, queue, "late", 2, [&](int) {
    queue.push(1, kNoLimit);
    return true;
  });
  coordinator.join(kLong);
  EXPECT_THROW(queue.pop(0), Cancelled);
}

TEST(QueueRunner, QueueNeedsToOutliveOnlyTheThreads) {
  Coordinator coordinator;
  {
    BoundedQueue<int> queue("numbers", 2);
    QueueRunner(coordinator, queue, "reader", 2, [](int) { return false; });
    EXPECT_EQ(drain(queue), 0);
    EXPECT_TRUE(coordinator.wait_for_threads(kLong));
  }
  coordinator.request_stop();  // the queue is destroyed: a callback that is still registered would use it
}

TEST(QueueRunner, NeedsAtLeastOneThread) {
  BoundedQueue<int> queue("numbers", 1);
  Coordinator coordinator;
  EXPECT_THROW(QueueRunner(coordinator, queue, "none", 0, [](int) { return false; }), Error);
}

}  // namespace
}  // namespace lockstep
