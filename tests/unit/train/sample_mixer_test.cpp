// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Who is mixed with whom: neighbours in a microshard, and for a single sample the next one of the batch.
#include "train/sample_mixer.h"

#include <gmock/gmock.h>

#include "core/device.h"
#include "data/reader_dataset.h"
#include "train/dataset_batch_source.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

/// Sample i has the features (10 i, 10 i + 1) and class i.
ReaderDataset numbered(std::int64_t size) {
  DatasetParts parts;
  parts.source = "numbers";
  parts.size = size;
  parts.feature_shape = {2};
  parts.features = Buffer(cpu_device(), static_cast<std::size_t>(size) * 2 * sizeof(float));
  parts.num_label_columns = 1;
  for (std::int64_t i = 0; i < size; ++i) {
    parts.label_indices.push_back(static_cast<std::int32_t>(i));
    for (std::int64_t k = 0; k < 2; ++k)
      parts.features.as<float>()[static_cast<std::size_t>(2 * i + k)] = static_cast<float>(10 * i + k);
  }
  return ReaderDataset(std::move(parts));
}

class SampleMixerTest : public ::testing::Test {
 protected:
  static constexpr std::int64_t kSamples = 6;
  const ReaderDataset data_ = numbered(kSamples);
  const std::shared_ptr<const SampleMixing> mixing_ =
      std::make_shared<const SampleMixing>(MixingOptions{.mixup = 1, .classes = kSamples}, Shape{2}, true, 1);

  /// What sample `own` becomes at `place` with `partner`.
  std::vector<float> mixture(std::int64_t own, std::int64_t partner, std::int64_t place) const {
    const float share = mixing_->draw({.seed = 3, .epoch = 1, .place = place}).share;
    std::vector<float> values;
    for (std::int64_t k = 0; k < 2; ++k)
      values.push_back(share * static_cast<float>(10 * own + k) +
                       (1 - share) * static_cast<float>(10 * partner + k));
    for (std::int64_t c = 0; c < kSamples; ++c)
      values.push_back(share * (c == own ? 1.0F : 0.0F) + (1 - share) * (c == partner ? 1.0F : 0.0F));
    return values;
  }
  /// Features and labels of a microshard of a batch of all samples in their order.
  std::vector<std::vector<float>> fetched(std::int64_t shards, int shard, bool labels_alone = false) const {
    const StepPlan plan({.num_samples = kSamples,
                         .batch_size = kSamples,
                         .shards = shards,
                         .seed = 3,
                         .shuffle = Shuffle::none,
                         .mixing = mixing_});
    DatasetBatchSource source(data_, plan, 1, 1);
    const Batch batch{.epoch = 1, .first = 0, .count = kSamples};
    const Microshard microshard = source.extent(batch, shard);
    std::vector<float> features(static_cast<std::size_t>(microshard.n * 2), -1);
    const Labels labels = labels_alone ? source.fetch_labels(batch, microshard, {}, features.data())
                                       : source.fetch(batch, microshard, {}, features.data());
    EXPECT_EQ(labels.columns, kSamples);
    std::vector<std::vector<float>> rows;
    for (std::int64_t i = 0; i < microshard.n; ++i) {
      rows.emplace_back(features.begin() + 2 * i, features.begin() + 2 * i + 2);
      rows.back().insert(rows.back().end(), labels.rows + i * kSamples, labels.rows + (i + 1) * kSamples);
    }
    return rows;
  }
};

TEST_F(SampleMixerTest, NeighboursOfAMicroshardAndTheFirstForTheLast) {
  const auto rows = fetched(2, 1);  // samples 3, 4, 5
  EXPECT_THAT(rows, ElementsAre(mixture(3, 4, 3), mixture(4, 5, 4), mixture(5, 3, 5)));
}

TEST_F(SampleMixerTest, ASingleSampleGetsTheNextOfTheBatch) {
  EXPECT_THAT(fetched(6, 2), ElementsAre(mixture(2, 3, 2)));
  EXPECT_THAT(fetched(6, 5), ElementsAre(mixture(5, 0, 5)));
}

TEST_F(SampleMixerTest, LabelsAloneAreThoseOfTheWholeFetch) {
  for (const std::int64_t shards : {2, 6}) {
    const auto whole = fetched(shards, 1), alone = fetched(shards, 1, true);
    for (std::size_t i = 0; i < whole.size(); ++i)
      EXPECT_THAT(std::vector(alone[i].begin() + 2, alone[i].end()),
                  ElementsAreArray(whole[i].begin() + 2, whole[i].end()));
  }
}

}  // namespace
}  // namespace lockstep
