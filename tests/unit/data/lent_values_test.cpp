// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Samples in memory that a program lends (DatasetParts::lent).
#include <gmock/gmock.h>

#include <limits>
#include <numeric>

#include "core/device.h"
#include "core/error.h"
#include "data/opened_samples.h"
#include "data/reader_dataset.h"

namespace lockstep {
namespace {

struct Lent {
  std::vector<float> features = std::vector<float>(12);
  std::vector<std::int32_t> classes{0, 1, 2};

  Lent() { std::iota(features.begin(), features.end(), 1.0F); }
  DatasetParts parts(std::shared_ptr<const void> lender = nullptr) const {
    DatasetParts parts;
    parts.source = "input train";
    parts.record_word = "sample";
    parts.size = 3;
    parts.feature_shape = Shape{4};
    parts.num_label_columns = 1;
    parts.label_kind = LabelKind::indices;
    parts.lent = {{.features = features.data(), .label_indices = classes.data()}, std::move(lender)};
    return parts;
  }
  DatasetParts copied() const {
    DatasetParts copy = parts();
    copy.lent = {};
    copy.features = Buffer(cpu_device(), sizeof(float) * features.size());
    std::ranges::copy(features, copy.features.as<float>().begin());
    copy.label_indices = classes;
    return copy;
  }
};

TEST(LentValues, AreReadWhereTheyLie) {
  const Lent lent;
  const OpenedSamples samples(lent.parts());
  EXPECT_TRUE(samples.in_memory());
  EXPECT_EQ(samples.values_at(1).features, lent.features.data() + 4);
  EXPECT_EQ(samples.values_at(1).label_indices, lent.classes.data() + 1);
}

TEST(LentValues, HaveTheFingerprintAndTheNumbersOfCopies) {
  const Lent lent;
  const ReaderDataset in_place(lent.parts()), copied(lent.copied());
  EXPECT_EQ(in_place.fingerprint(), copied.fingerprint());
  std::vector<float> one(4), other(4);
  in_place.gather_scaled(2, one.data());
  copied.gather_scaled(2, other.data());
  EXPECT_EQ(one, other);
  EXPECT_THAT(one, testing::ElementsAre(9, 10, 11, 12));
  Lent changed;
  changed.classes[2] = 1;
  EXPECT_NE(ReaderDataset(changed.parts()).fingerprint(), copied.fingerprint());
}

TEST(LentValues, KeepTheirLenderAsLongAsTheyAreUsed) {
  auto lent = std::make_shared<const Lent>();
  const std::weak_ptr<const Lent> lender = lent;
  {
    const ReaderDataset data(lent->parts(lent));
    lent.reset();
    EXPECT_FALSE(lender.expired());
  }
  EXPECT_TRUE(lender.expired());
}

TEST(LentValues, AreCopiedWhenTheirPartsAreTaken) {
  const Lent lent;
  OpenedSamples samples(lent.parts());
  const DatasetParts taken = std::move(samples).take_parts();
  EXPECT_FALSE(taken.lent.used());
  EXPECT_NE(taken.features.data(), lent.features.data());
  EXPECT_THAT(taken.features.as<float>(), testing::ElementsAreArray(lent.features));
  EXPECT_EQ(taken.label_indices, lent.classes);
}

TEST(LentValues, AreCheckedLikeAnyOthers) {
  Lent lent;
  lent.features[5] = std::numeric_limits<float>::infinity();
  EXPECT_THROW(OpenedSamples(lent.parts()), Error);
}

}  // namespace
}  // namespace lockstep
