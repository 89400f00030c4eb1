// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The communication of a step does not allocate. This program counts calls of operator new.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <vector>

#include "comm/gradient_reducer.h"
#include "comm/small_sum.h"
#include "comm/watchdog.h"
#include "support/mpi_world.h"

namespace {
std::atomic<long> g_allocations{0};
}

[[gnu::noinline]] void* operator new(std::size_t bytes) {
  ++g_allocations;
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace lockstep {
namespace {

TEST(Allocation, AllocationsAreCounted) {
  const long before = g_allocations;
  const std::vector<int> some(100);
  EXPECT_GT(g_allocations, before);
}

TEST(Allocation, StepDoesNotAllocate) {
  const std::int64_t count = 50000;
  for (const int shards : {8, 5})
    for (const bool overlap : {false, true}) {
      GradientReducer reducer(test_world(), nullptr, shards, count, {{0, 20000}, {20000, count}},
                              {.overlap = overlap});
      GradientReducer compressed(test_world(), nullptr, shards, count, {{0, 20000}, {20000, count}},
                                 {.sum = HostTreeSum{.nodes = HostTreeSum::Nodes::rounded_with_feedback}});
      SmallSum sum(test_world(), shards, 0, 3,
                   [](double* into, const double* right) { into[0] += right[0]; });
      const auto step = [&](bool chunk) {
        set_phase("step");
        reducer.start(0);
        sum.reduce("small");
        reducer.start(1);
        if (chunk) sum.reduce("small again");
        reducer.wait_all();
        compressed.start(0);
        compressed.start(1);
        compressed.wait_all();
        compressed.feedback()->keep();
      };
      step(false);
      test_world().barrier("before");
      // The watchdog's thread may allocate to answer a question; no question is asked here.
      const long before = g_allocations;
      for (int i = 0; i < 5; ++i) step(true);
      EXPECT_EQ(g_allocations, before) << shards << " shards, overlap " << overlap;
    }
}

}  // namespace
}  // namespace lockstep
