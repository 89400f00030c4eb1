// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/sample_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <map>
#include <thread>

#include "core/error.h"
#include "core/range.h"
#include "core/timer.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

/// Sample i has the value i and the label i + 1.
class CountingStore final : public SampleStore {
 public:
  void read(std::int64_t first, std::int64_t count, const SampleRoom& to) override {
    {
      const std::lock_guard lock(mutex);
      ++reads[first];
    }
    std::this_thread::sleep_for(delay);
    if (first == hangs_at) forever.get_future().wait();
    if (first == fails_at) throw Error(ErrorKind::data, "damaged", "file, record 7", "Copy it again.");
    for (std::int64_t i = 0; i < count; ++i) {
      static_cast<float*>(to.features)[i] = static_cast<float>(first + i);
      to.label_indices[i] = static_cast<std::int32_t>(first + i + 1);
    }
  }
  std::mutex mutex;
  std::map<std::int64_t, int> reads;  ///< by first sample
  std::int64_t fails_at = -1, hangs_at = -1;
  std::chrono::milliseconds delay{0};
  std::promise<void> forever;
};

constexpr std::int64_t kSamples = 1000, kBlock = 10;
/// A block of the store above, with its alignment.
constexpr std::int64_t kBlockBytes = 128;

class SampleStreamTest : public ::testing::Test {
 protected:
  std::unique_ptr<SampleStream> stream(std::int64_t blocks, int threads = 2, double timeout = 60) {
    return std::make_unique<SampleStream>(
        store, BlockGrid({{0, 0}}, kSamples, kBlock),
        SampleSizes{.feature_bytes = 4, .label_indices = 1, .label_rows = 0},
        [](std::int64_t, std::int64_t, const SampleValues&) {},
        [](std::int64_t sample) { return "record " + std::to_string(sample); },
        SampleStreamOptions{
            .memory_bytes = blocks * kBlockBytes, .timeout_seconds = timeout, .threads = threads});
  }
  static StepPlan plan(std::int64_t shards, Shuffle shuffle = Shuffle::blocks) {
    return StepPlan({.num_samples = kSamples,
                     .batch_size = 48,
                     .shards = shards,
                     .seed = 1,
                     .shuffle = shuffle,
                     .blocks = BlockGrid({{0, 0}}, kSamples, kBlock),
                     .window_blocks = 4});
  }
  /// Uses the samples of the microshards of all batches of an epoch, each in a thread of its own.
  static void use_epoch(SampleStream& stream, const StepPlan& plan, Range shards) {
    for (Cursor cursor; cursor.epoch == 0; cursor = plan.advance(cursor)) {
      const Batch batch = plan.batch(cursor);
      stream.begin(plan, batch, shards);
      std::vector<std::thread> threads;
      for (std::int64_t shard = shards.first; shard < shards.last; ++shard)
        threads.emplace_back([&, shard] {
          const Range range = plan.shard_range(batch.count, shard);
          for (std::int64_t i = range.first; i < range.last; ++i) {
            const std::int64_t sample = plan.sample_at(batch.epoch, batch.first + i);
            stream.with_sample(sample, [&](const SampleValues& values) {
              EXPECT_EQ(*static_cast<const float*>(values.features), static_cast<float>(sample));
              EXPECT_EQ(*values.label_indices, sample + 1);
            });
          }
        });
      for (std::thread& thread : threads) thread.join();
    }
    stream.leave(plan);
  }

  const std::shared_ptr<CountingStore> store = std::make_shared<CountingStore>();
};

TEST_F(SampleStreamTest, DeliversEverySampleThroughFewPlaces) {
  for (const Shuffle shuffle : {Shuffle::none, Shuffle::samples, Shuffle::blocks})
    for (const std::int64_t blocks : {6, 7, 20, 100}) {
      const auto data = stream(blocks);
      EXPECT_LE(data->memory_bytes(), blocks * kBlockBytes);
      use_epoch(*data, plan(4, shuffle), {0, 4});
    }
}

TEST_F(SampleStreamTest, WithRoomForTheWindowsReadsEachBlockOnce) {
  const auto data = stream(40, 1);
  const StepPlan order = plan(4);
  use_epoch(*data, order, {0, 2});
  // What is read ahead belongs to the next epoch.
  int twice = 0;
  for (const auto& [first, times] : store->reads) twice += times > 1 ? 1 : 0;
  EXPECT_LE(twice, 40);
  EXPECT_LE(store->reads.size(), 100U);
  for (const auto& [first, times] : store->reads) EXPECT_LE(times, 2) << first;
}

TEST_F(SampleStreamTest, AnErrorIsThrownWhereItsBlockIsUsed) {
  store->fails_at = 500;
  const auto data = stream(20);
  const StepPlan order = plan(4, Shuffle::none);
  data->begin(order, order.batch({0, 0}), {0, 4});
  for (std::int64_t sample = 0; sample < 500; ++sample) data->with_sample(sample, [](const SampleValues&) {});
  for (int time = 0; time < 2; ++time) {
    try {
      data->with_sample(505, [](const SampleValues&) { FAIL(); });
      FAIL();
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("damaged"));
      EXPECT_EQ(error.where(), "file, record 7");
    }
  }
  data->leave(order);
}

TEST_F(SampleStreamTest, AReadThatDoesNotEndIsAnErrorAfterTheLimit) {
  store->hangs_at = 30;
  {
    const auto data = stream(20, 1, 0.2);
    const Timer timer;
    try {
      data->with_sample(35, [](const SampleValues&) { FAIL(); });
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::data);
      EXPECT_EQ(error.where(), "record 35");
      EXPECT_THAT(error.what(), HasSubstr("no data came for 0.2 s (timeout_seconds of section data)"));
    }
    EXPECT_GE(timer.seconds(), 0.2);
  }
  store->forever.set_value();  // the thread that was left behind ends
}

/// Reading sleeps, so two threads read twice as much.
TEST_F(SampleStreamTest, AsManyThreadsReadAsTheWaitsOfBatchesAskFor) {
  store->delay = std::chrono::milliseconds(2);
  const auto slow = stream(20, 0);
  EXPECT_EQ(slow->statistics().threads, 1);
  const Timer timer;
  while (slow->statistics().threads < 2 && timer.seconds() < 60) use_epoch(*slow, plan(4), {0, 4});
  EXPECT_GE(slow->statistics().threads, 2);
}

TEST_F(SampleStreamTest, TooLittleMemoryIsAnErrorThatSaysHowMuchIsNeeded) {
  try {
    stream(5, 2);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::config);
    EXPECT_THAT(error.what(), HasSubstr("blocks of 10 samples take 1.28e-07 GB, and 6 of them are needed"));
  }
}

}  // namespace
}  // namespace lockstep
