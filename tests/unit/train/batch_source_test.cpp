// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What sources deliver for a microshard: rows in memory, and another source's samples changed by a feed.
#include <gmock/gmock.h>

#include <numeric>

#include "train/fed_batch_source.h"
#include "train/rows_batch_source.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;

/// Three samples of two values, in microshards of 2, 0 and 1.
class BatchSourceTest : public ::testing::Test {
 protected:
  BatchSourceTest() : rows_(2, {2, 0, 1}) { std::iota(features_.begin(), features_.end(), 1.0F); }

  std::vector<float> features_ = std::vector<float>(6);
  const std::vector<float> label_rows_ = {10, 11, 20, 21, 30, 31};
  const std::vector<std::int32_t> label_indices_ = {7, 8, 9};
  RowsBatchSource rows_;
};

TEST_F(BatchSourceTest, RowsAreCutBySizes) {
  rows_.set(features_.data(), {.rows = label_rows_.data(), .columns = 2});
  const Batch batch = rows_.batch();
  EXPECT_EQ(batch.count, 3);
  EXPECT_EQ(rows_.extent(batch, 0).n, 2);
  EXPECT_EQ(rows_.extent(batch, 1).n, 0);
  const Microshard last = rows_.extent(batch, 2);
  EXPECT_EQ(last.shard, 2);
  EXPECT_EQ(last.first_sample, 2);
  EXPECT_EQ(last.n, 1);
  std::vector<float> fetched(2);
  const Labels labels = rows_.fetch(batch, last, {}, fetched.data());
  EXPECT_THAT(fetched, ElementsAre(5, 6));
  EXPECT_EQ(labels.columns, 2);
  EXPECT_EQ(labels.rows[0], 30);
  EXPECT_EQ(labels.indices, nullptr);
}

TEST_F(BatchSourceTest, RowsWithoutLabels) {
  rows_.set(features_.data());
  std::vector<float> fetched(4);
  const Labels labels = rows_.fetch(rows_.batch(), rows_.extent(rows_.batch(), 0), {}, fetched.data());
  EXPECT_THAT(fetched, ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(labels.columns, 0);
  EXPECT_EQ(labels.indices, nullptr);
  EXPECT_EQ(labels.rows, nullptr);
}

TEST_F(BatchSourceTest, FeedChangesFeaturesAndLabels) {
  rows_.set(features_.data(), {.indices = label_indices_.data()});
  FedBatchSource fed(rows_);
  EXPECT_FALSE(fed.feeds());
  std::int32_t changed = 0;
  fed.set_feed([&](std::int64_t step, const Microshard& microshard, float* features, Labels& labels) {
    features[0] = static_cast<float>(100 * step + microshard.shard);
    changed = labels.indices[0] + 1;
    labels.indices = &changed;
  });
  EXPECT_TRUE(fed.feeds());
  fed.set_step(4);
  const Microshard last = fed.extent(rows_.batch(), 2);
  std::vector<float> fetched(2);
  Labels labels = fed.fetch(rows_.batch(), last, {}, fetched.data());
  EXPECT_THAT(fetched, ElementsAre(402, 6));
  EXPECT_EQ(labels.indices[0], 10);
  labels = fed.fetch_labels(rows_.batch(), last, {}, fetched.data());
  EXPECT_EQ(labels.indices[0], 10) << "labels alone are fed as well";
  EXPECT_EQ(features_[4], 5) << "the rows themselves stay";
}

}  // namespace
}  // namespace lockstep
