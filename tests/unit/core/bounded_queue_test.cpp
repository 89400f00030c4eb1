// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "core/bounded_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>
#include <thread>
#include <vector>

namespace {
std::atomic<long> g_allocations{0};
}

// Not inlined: otherwise the compiler would warn about free() of memory from operator new.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  ++g_allocations;
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace lockstep {
namespace {

using testing::HasSubstr;

constexpr double kLong = 60;  // seconds; only a failing test waits that long

template <typename Body>
std::string text_of_error(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(BoundedQueue, KeepsOrderWhenTheRingWraps) {
  BoundedQueue<std::unique_ptr<int>> queue("numbers", 3);
  int in = 0, out = 0;
  for (int round = 0; round < 10; ++round) {
    while (queue.size() < queue.capacity()) queue.push(std::make_unique<int>(in++), kLong);
    for (int i = 0; i < 2; ++i) EXPECT_EQ(*queue.pop(kLong), out++);
  }
  EXPECT_GT(out, 15);
}

TEST(BoundedQueue, TimeoutMessageNamesTheQueue) {
  BoundedQueue<int> queue("samples", 2);
  EXPECT_EQ(text_of_error([&] { queue.pop(0.01); }),
            "waited 0.01 s for an element of queue 'samples', which is empty and not closed");
  queue.push(1, 0);
  queue.push(2, 0);
  EXPECT_EQ(text_of_error([&] { queue.push(3, 0.01); }),
            "waited 0.01 s for room in queue 'samples', which holds 2 of 2 elements");
  EXPECT_EQ(queue.size(), 2U);
  EXPECT_EQ(queue.pop(0), 1);
}

TEST(BoundedQueue, PushWaitsForRoomAndPopForAnElement) {
  BoundedQueue<int> queue("numbers", 1);
  constexpr int kCount = 1000;
  std::thread producer([&] {
    for (int i = 0; i < kCount; ++i) queue.push(i, kLong);
  });
  for (int i = 0; i < kCount; ++i) ASSERT_EQ(queue.pop(kLong), i);
  producer.join();
}

TEST(BoundedQueue, CloseDeliversTheRemainingElements) {
  BoundedQueue<int> queue("numbers", 4);
  queue.push(1, 0);
  queue.push(2, 0);
  queue.close();
  queue.close();
  EXPECT_THROW(queue.push(3, 0), Cancelled);
  EXPECT_EQ(queue.pop(0), 1);
  EXPECT_EQ(queue.pop(0), 2);
  EXPECT_THROW(queue.pop(0), EndOfInput);
  queue.cancel();
  EXPECT_THROW(queue.pop(0), Cancelled);
}

TEST(BoundedQueue, CancelDropsTheElements) {
  BoundedQueue<std::shared_ptr<int>> queue("numbers", 4);
  const auto element = std::make_shared<int>(1);
  queue.push(element, 0);
  EXPECT_EQ(element.use_count(), 2);
  queue.cancel();
  EXPECT_EQ(element.use_count(), 1);
  EXPECT_EQ(queue.size(), 0U);
  EXPECT_THROW(queue.pop(0), Cancelled);
  EXPECT_THROW(queue.push(element, 0), Cancelled);
  queue.close();
  EXPECT_THROW(queue.pop(0), Cancelled) << "close() does not change a cancelled queue to an ended one";
}

// Threads in `wait` receive an `Expected` exception after `end`, whether or not they are already blocked.
template <typename Expected, typename Wait, typename End>
void expect_wakes(Wait wait, End end) {
  std::atomic<int> woken{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      try {
        wait();
      } catch (const Expected&) {
        ++woken;
      }
    });
  end();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(woken, 4);
}

TEST(BoundedQueue, CloseAndCancelWakeEveryWait) {
  BoundedQueue<int> empty("a", 1), full("b", 1), cancelled("c", 1);
  full.push(1, 0);
  expect_wakes<EndOfInput>([&] { empty.pop(kLong); }, [&] { empty.close(); });
  expect_wakes<Cancelled>([&] { full.push(2, kLong); }, [&] { full.cancel(); });
  expect_wakes<Cancelled>([&] { cancelled.pop(kLong); }, [&] { cancelled.cancel(); });
}

TEST(BoundedQueue, ManyThreadsDeliverEachElementOnce) {
  constexpr int kThreads = 4, kEach = 2000;
  BoundedQueue<int> queue("numbers", 7);
  std::vector<std::atomic<int>> seen(kThreads * kEach);
  std::vector<std::thread> producers, consumers;
  for (int t = 0; t < kThreads; ++t) {
    producers.emplace_back([&queue, t] {
      for (int i = 0; i < kEach; ++i) queue.push(t * kEach + i, kLong);
    });
    consumers.emplace_back([&] {
      try {
        for (;;) ++seen[static_cast<std::size_t>(queue.pop(kLong))];
      } catch (const EndOfInput&) {
      }
    });
  }
  for (std::thread& thread : producers) thread.join();
  queue.close();
  for (std::thread& thread : consumers) thread.join();
  for (const auto& count : seen) ASSERT_EQ(count, 1);
}

TEST(BoundedQueue, PushAndPopDoNotAllocate) {
  BoundedQueue<std::vector<float>> queue("batches", 3);
  std::vector<float> batch(100);
  const long before = g_allocations;
  for (int i = 0; i < 100; ++i) {
    queue.push(std::move(batch), kLong);
    batch = queue.pop(kLong);
  }
  EXPECT_EQ(g_allocations, before);
  EXPECT_EQ(batch.size(), 100U);
  const std::vector<float> another(100);
  EXPECT_GT(g_allocations, before) << "allocations are not counted";
}

TEST(BoundedQueue, CapacityIsAtLeastOne) {
  EXPECT_THAT(text_of_error([] { BoundedQueue<int>("none", 0); }), HasSubstr("'none'"));
}

}  // namespace
}  // namespace lockstep
