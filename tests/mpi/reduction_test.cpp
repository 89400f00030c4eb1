// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The gradient sum has the bits of a recursive sum in one process, for several numbers of shards, bucket
// layouts and sizes, with and without overlap, by messages and in shared memory.
#include <gtest/gtest.h>

#include <bit>
#include <chrono>
#include <cmath>
#include <numeric>
#include <thread>

#include "comm/gradient_reducer.h"
#include "core/range.h"
#include "core/thread_pool.h"
#include "support/mpi_world.h"

namespace lockstep {
namespace {

// Differs per shard and element, with widely different magnitudes, so that another order of summation gives
// other bits. (MurmurHash3's finaliser: cheap, because every rank computes all leaves.)
float leaf_value(int shard, std::int64_t element) {
  std::uint32_t hash = static_cast<std::uint32_t>(shard) * 0x9E3779B9U + static_cast<std::uint32_t>(element);
  hash = (hash ^ (hash >> 16)) * 0x85EBCA6BU;
  hash = (hash ^ (hash >> 13)) * 0xC2B2AE35U;
  hash ^= hash >> 16;
  return static_cast<float>(static_cast<std::int32_t>(hash)) * static_cast<float>(1U << (hash % 16));
}

float reference(int first, int last, std::int64_t element) {
  if (last - first == 1) return leaf_value(first, element);
  int left = 1;
  while (2 * left < last - first) left *= 2;
  return reference(first, first + left, element) + reference(first + left, last, element);
}

std::vector<Range> cut(std::int64_t count, int buckets) {
  std::vector<Range> all;
  for (int i = 0; i < buckets; ++i) all.push_back(part_of(count, i, buckets));
  return all;
}

void check(int shards, std::int64_t count, int buckets, GradientReducer::Options options, int steps = 2,
           ThreadPool* pool = nullptr) {
  Communicator& world = test_world();
  GradientReducer reducer(world, pool, shards, count, cut(count, buckets), options);
  ASSERT_TRUE(world.size() > 1 || reducer.num_partials() == 1);
  ASSERT_EQ(reducer.shares_memory(), std::get<HostTreeSum>(options.sum).shared_memory && world.size() > 1)
      << reducer.why_not_shared();
  for (int step = 0; step < steps; ++step) {
    for (int k = 0; k < reducer.num_partials(); ++k) {
      const Subtree subtree = reducer.partial_subtree(k);
      for (std::int64_t i = 0; i < count; ++i)
        reducer.partial(k)[i] = reference(subtree.first, subtree.last, i + step);
    }
    for (int bucket = buckets - 1; bucket >= 0; --bucket) reducer.start(bucket);
    for (int done = 1; done <= buckets; ++done) {  // in the order of their start
      reducer.wait_for(done);
      EXPECT_GE(reducer.num_done(), done);
      const std::int64_t first = cut(count, buckets)[static_cast<std::size_t>(buckets - done)].first;
      if (first < count) {
        EXPECT_EQ(std::bit_cast<std::uint32_t>(reducer.result()[first]),
                  std::bit_cast<std::uint32_t>(reference(0, shards, first + step)));
      }
    }
    reducer.wait_all();
    EXPECT_EQ(reducer.num_done(), 0);
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < count; ++i)
      wrong += std::bit_cast<std::uint32_t>(reducer.result()[i]) !=
                       std::bit_cast<std::uint32_t>(reference(0, shards, i + step))
                   ? 1
                   : 0;
    EXPECT_EQ(wrong, 0) << shards << " shards, " << count << " elements, " << buckets << " buckets, step "
                        << step;
  }
}

TEST(Reduction, SameBitsAsOneProcess) {
  for (const int shards : {8, 5, 12, 1, 16})
    for (const std::int64_t count :
         {std::int64_t{1}, std::int64_t{17}, std::int64_t{5003}, std::int64_t{40000}})
      for (const int buckets : {1, 3})
        for (const bool overlap : {false, true})
          for (const bool shared : {false, true})
            check(shards, count, buckets, {.sum = HostTreeSum{.shared_memory = shared}, .overlap = overlap});
}

TEST(Reduction, SumsInSmallPieces) {
  for (const int shards : {8, 5, 12}) check(shards, 100003, 2, {.sum = HostTreeSum{.piece_bytes = 1024}});
}

TEST(Reduction, SumsLargeBuckets) {
  for (const int shards : {8, 5, 12})
    for (const bool overlap : {false, true})
      for (const bool shared : {false, true})
        check(shards, 1000003, 4, {.sum = HostTreeSum{.shared_memory = shared}, .overlap = overlap}, 1);
}

TEST(Reduction, SumsWithAThreadPool) {
  ThreadPool pool(3);
  for (const int shards : {8, 5})
    for (const bool shared : {false, true})
      check(shards, 1000003, 2, {.sum = HostTreeSum{.shared_memory = shared}}, 1, &pool);
}

/// Ranks that reach a sum at other times: nobody reads what is not there yet, or is written for the next
/// step.
TEST(Reduction, RanksThatAreLateInSharedMemory) {
  Communicator& world = test_world();
  const std::int64_t count = 5003;
  GradientReducer reducer(world, nullptr, 8, count, cut(count, 3),
                          {.sum = HostTreeSum{.shared_memory = true}});
  for (int step = 0; step < 24; ++step) {
    if (step % world.size() == world.rank()) std::this_thread::sleep_for(std::chrono::milliseconds(3));
    for (int k = 0; k < reducer.num_partials(); ++k) {
      const Subtree subtree = reducer.partial_subtree(k);
      for (std::int64_t i = 0; i < count; ++i)
        reducer.partial(k)[i] = reference(subtree.first, subtree.last, i + step);
    }
    for (int bucket = 0; bucket < 3; ++bucket) {
      if ((step + bucket) % world.size() == world.rank() && step < 12)
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      reducer.start(bucket);
    }
    reducer.wait_all();
    for (std::int64_t i = 0; i < count; ++i)
      ASSERT_EQ(std::bit_cast<std::uint32_t>(reducer.result()[i]),
                std::bit_cast<std::uint32_t>(reference(0, 8, i + step)))
          << "step " << step;
  }
}

/// A rank reads what is counted, and sends nothing.
TEST(Reduction, CountsWhatItReadsInSharedMemory) {
  Communicator& world = test_world();
  const std::int64_t count = 1 << 16;
  GradientReducer reducer(world, nullptr, 8, count, cut(count, 2),
                          {.sum = HostTreeSum{.shared_memory = true}});
  const std::uint64_t before = reducer.communicator().bytes_moved();
  for (const int bucket : {0, 1}) reducer.start(bucket);
  reducer.wait_all();
  EXPECT_EQ(reducer.communicator().bytes_moved() - before,
            static_cast<std::uint64_t>(reducer.bytes_per_step()));
  if (world.size() == 2) {
    EXPECT_EQ(reducer.bytes_per_step(), count * std::int64_t{sizeof(float)});
  }
}

/// The owner of a part has the bits of one process; gather() gives them to all.
void check_parts(int shards, std::int64_t count, int buckets, GradientReducer::Options options,
                 ThreadPool* pool = nullptr) {
  constexpr std::int64_t kBlock = 48;  // parts begin at its multiples
  Communicator& world = test_world();
  const auto cut_above = [](std::int64_t i) { return (i + kBlock - 1) / kBlock * kBlock; };
  const auto ownership = std::make_shared<Ownership>(cut(count, buckets), world.size(), shards, cut_above);
  std::get<HostTreeSum>(options.sum).ownership = ownership;
  GradientReducer reducer(world, pool, shards, count, cut(count, buckets), options);
  for (int step = 0; step < 2; ++step) {
    for (int k = 0; k < reducer.num_partials(); ++k) {
      const Subtree subtree = reducer.partial_subtree(k);
      for (std::int64_t i = 0; i < count; ++i)
        reducer.partial(k)[i] = reference(subtree.first, subtree.last, i + step);
    }
    for (int bucket = buckets - 1; bucket >= 0; --bucket) reducer.start(bucket);
    reducer.wait_all();
    std::int64_t wrong = 0;
    const auto compare = [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i)
        wrong += std::bit_cast<std::uint32_t>(reducer.result()[i]) !=
                         std::bit_cast<std::uint32_t>(reference(0, shards, i + step))
                     ? 1
                     : 0;
    };
    for (const Range& part : ownership->parts(world.rank())) compare(part.first, part.last);
    EXPECT_EQ(wrong, 0) << shards << " shards, " << count << " elements, own parts";
    reducer.gather(reducer.result(), "test");
    compare(0, count);
    EXPECT_EQ(wrong, 0) << shards << " shards, " << count << " elements, after gather()";
  }
}

TEST(Reduction, OwnersHaveTheSameBitsAsOneProcess) {
  for (const int shards : {8, 5, 12, 1, 16})
    for (const std::int64_t count :
         {std::int64_t{1}, std::int64_t{17}, std::int64_t{500}, std::int64_t{40000}})
      for (const int buckets : {1, 3})
        for (const bool overlap : {false, true})
          for (const bool shared : {false, true})
            check_parts(shards, count, buckets,
                        {.sum = HostTreeSum{.shared_memory = shared}, .overlap = overlap});
  for (const int shards : {8, 5}) check_parts(shards, 300007, 2, {.sum = HostTreeSum{.piece_bytes = 1024}});
  ThreadPool pool(3);
  for (const int shards : {8, 5})
    for (const bool shared : {false, true})
      check_parts(shards, 1000003, 2, {.sum = HostTreeSum{.shared_memory = shared}}, &pool);
}

/// All ranks together send what is counted, in whole.
TEST(Reduction, PartsCountTheirBytes) {
  Communicator& world = test_world();
  const std::int64_t count = 100000;
  for (const int shards : {8, 5}) {
    HostTreeSum sum;
    sum.ownership = std::make_shared<Ownership>(cut(count, 2), world.size(), shards,
                                                [](std::int64_t i) { return (i + 15) / 16 * 16; });
    GradientReducer reducer(world, nullptr, shards, count, cut(count, 2), {.sum = sum});
    const std::uint64_t before = reducer.communicator().bytes_moved();
    for (int bucket : {0, 1}) reducer.start(bucket);
    reducer.wait_all();
    reducer.gather(reducer.result(), "test");
    std::vector<std::int64_t> sent(static_cast<std::size_t>(world.size())), moved(sent.size());
    const std::int64_t mine = reducer.bytes_per_step();
    const auto both = static_cast<std::int64_t>(reducer.communicator().bytes_moved() - before);
    world.allgather(&mine, sizeof mine, sent.data(), "sent");
    world.allgather(&both, sizeof both, moved.data(), "moved");
    // What is moved counts at the sender and at the receiver.
    EXPECT_EQ(2 * std::accumulate(sent.begin(), sent.end(), std::int64_t{0}),
              std::accumulate(moved.begin(), moved.end(), std::int64_t{0}))
        << shards << " shards";
  }
}

TEST(Reduction, TestDataRevealAWrongOrder) {
  int differs = 0;
  for (std::int64_t i = 0; i < 1000; ++i) {
    float plain = 0;
    for (int shard = 0; shard < 8; ++shard) plain += leaf_value(shard, i);
    differs += plain != reference(0, 8, i) ? 1 : 0;
  }
  EXPECT_GT(differs, 100);
}

// In MPI's own order: correct to rounding, and equal on the ranks of this run.
TEST(Reduction, FastModeIsCorrectToRounding) {
  Communicator& world = test_world();
  const std::int64_t count = 30011;
  for (const int shards : {8, 5})
    for (const bool overlap : {false, true}) {
      GradientReducer reducer(world, nullptr, shards, count, cut(count, 3),
                              {.sum = FastSum{}, .overlap = overlap});
      for (int step = 0; step < 2; ++step) {
        for (int k = 0; k < reducer.num_partials(); ++k) {
          const Subtree subtree = reducer.partial_subtree(k);
          for (std::int64_t i = 0; i < count; ++i)
            reducer.partial(k)[i] = reference(subtree.first, subtree.last, i);
        }
        for (int bucket = 0; bucket < 3; ++bucket) reducer.start(bucket);
        reducer.wait_all();
        std::int64_t wrong = 0;
        for (std::int64_t i = 0; i < count; ++i) {
          double exact = 0, magnitude = 0;
          for (int shard = 0; shard < shards; ++shard) {
            exact += leaf_value(shard, i);
            magnitude += std::fabs(leaf_value(shard, i));
          }
          // Each of shards - 1 additions rounds by at most half an ulp of the sum of magnitudes.
          const double tolerance = shards * 0x1p-24 * magnitude;
          wrong += !(std::fabs(reducer.result()[i] - exact) <= tolerance) ? 1 : 0;
        }
        EXPECT_EQ(wrong, 0) << shards << " shards, step " << step;
      }
    }
}

TEST(Reduction, CountsBytesSent) {
  Communicator& world = test_world();
  const std::int64_t count = 1 << 20;
  GradientReducer reducer(world, nullptr, 8, count, cut(count, 4));
  const std::int64_t payload = count * std::int64_t{sizeof(float)};
  const std::int64_t ranks = world.size();
  EXPECT_GE(reducer.bytes_per_step(), 2 * payload * (ranks - 1) / ranks - 1024);
  const bool balanced = ranks == 1 || ranks == 2 || ranks == 4 || ranks == 8;
  EXPECT_LE(reducer.bytes_per_step(), (balanced ? 2 : 4) * payload * (ranks - 1) / ranks);
  EXPECT_GE(reducer.memory_bytes(), static_cast<std::size_t>(payload));
  const std::uint64_t before = reducer.communicator().bytes_moved();
  for (int bucket = 0; bucket < 4; ++bucket) reducer.start(bucket);
  reducer.wait_all();
  const auto moved = static_cast<std::int64_t>(reducer.communicator().bytes_moved() - before);
  // Sent and received bytes. Chunks differ by one cache line per cut.
  EXPECT_GE(moved, reducer.bytes_per_step());
  EXPECT_LE(moved, 3 * reducer.bytes_per_step() + 65536);
}

TEST(Reduction, InfinityAndNanReachEveryRank) {
  Communicator& world = test_world();
  for (const std::int64_t count : {std::int64_t{100}, std::int64_t{20000}}) {
    GradientReducer reducer(world, nullptr, 8, count, {{0, count}});
    for (int k = 0; k < reducer.num_partials(); ++k)
      for (std::int64_t i = 0; i < count; ++i) reducer.partial(k)[i] = 1;
    const bool last =
        reducer.num_partials() > 0 && reducer.partial_subtree(reducer.num_partials() - 1).last == 8;
    if (last) {
      reducer.partial(reducer.num_partials() - 1)[3] = NAN;
      reducer.partial(reducer.num_partials() - 1)[count - 1] = INFINITY;
    }
    reducer.start(0);
    reducer.wait_all();
    EXPECT_TRUE(std::isnan(reducer.result()[3]));
    EXPECT_TRUE(std::isinf(reducer.result()[count - 1]));
    EXPECT_TRUE(std::isfinite(reducer.result()[4]));
  }
}

}  // namespace
}  // namespace lockstep
