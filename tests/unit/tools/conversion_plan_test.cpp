// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/convert/conversion_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/range.h"
#include "tools/convert/convert_progress.h"

namespace lockstep {
namespace {

using testing::ElementsAre;

TEST(ConversionPlan, ShardsAreAllSamplesInOrderAndDifferByOneAtMost) {
  for (const std::int64_t samples : {1, 7, 100, 101, 1'000'000'007})
    for (const std::int64_t shards : {1, 2, 3, 7, 64}) {
      if (shards > samples) continue;
      const ConversionPlan plan{.output = "out.h5", .shards = shards, .samples = samples};
      std::int64_t next = 0;
      for (std::int64_t shard = 0; shard < shards; ++shard) {
        const Range range = plan.samples_of(shard);
        EXPECT_EQ(range.first, next);
        EXPECT_GE(range.size(), samples / shards);
        EXPECT_LE(range.size(), samples / shards + 1);
        next = range.last;
      }
      EXPECT_EQ(next, samples);
    }
  // Products of samples and shards need more than 64 bits.
  const ConversionPlan large{.output = "out.h5", .shards = 99999, .samples = std::int64_t{1} << 60};
  EXPECT_EQ(large.samples_of(99998).last, std::int64_t{1} << 60);
}

TEST(ConversionPlan, NamesOfFiles) {
  ConversionPlan plan{.output = "a.b/out.h5", .samples = 100};
  EXPECT_THAT(plan.files(0), ElementsAre("a.b/out.h5"));
  EXPECT_THAT(plan.patterns(), ElementsAre("a.b/out.h5"));
  plan.shards = 8;
  EXPECT_THAT(plan.files(3), ElementsAre("a.b/out-00003-of-00008.h5"));
  EXPECT_THAT(plan.patterns(), ElementsAre("a.b/out-*-of-00008.h5"));
  EXPECT_EQ(plan.records_folder(), "a.b/.out.h5.convert");
  EXPECT_EQ(plan.classes_path(), "a.b/out.classes.txt");
  plan.format = SampleFormat::npy;
  plan.labels = true;
  plan.output = "a.b/out";  // with --to npy
  EXPECT_THAT(plan.files(3), ElementsAre("a.b/out-00003-of-00008", "a.b/out-00003-of-00008.labels"));
  plan.output = "out.npy";
  EXPECT_THAT(plan.patterns(), ElementsAre("out-*-of-00008.npy", "out-*-of-00008.labels.npy"));
}

TEST(ConversionPlan, FormatsByNameAndByEnding) {
  EXPECT_EQ(sample_format("", "x.HDF5"), SampleFormat::hdf5);
  EXPECT_EQ(sample_format("", "x.tsv"), SampleFormat::csv);
  EXPECT_EQ(sample_format("tfrecord", "x.h5"), SampleFormat::tfrecord);
  EXPECT_EQ(sample_format("npy", "x"), SampleFormat::npy);
  EXPECT_EQ(sample_format("npy", "x.npz"), SampleFormat::npz);
  EXPECT_THROW(sample_format("", "x"), Error);
}

TEST(ConvertProgress, Line) {
  EXPECT_EQ(convert_progress_line(200, 1000, 0.1, 24e6, 2),
            "converted 200/1000 samples (10%)  12.0 MB/s  left 18s");
  EXPECT_EQ(convert_progress_line(0, 1000, 0, 0, 0), "converted 0/1000 samples (0%)  0.0 MB/s  left ?");
}

}  // namespace
}  // namespace lockstep
