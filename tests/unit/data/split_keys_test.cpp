// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/split_keys.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "data/choice_options.h"
#include "unit/data/reader_test_support.h"

namespace lockstep::testing {
namespace {

using Part = ChoiceOptions::Part;

using Keys = std::pair<std::string, std::string>;

TEST(SplitKey, IsTheNameOfTheFileAndOfTheRecordWithoutFolders) {
  const auto key = [](const char* where) {
    return Keys(split_key_of(where, SplitKey::record), split_key_of(where, SplitKey::file));
  };
  EXPECT_EQ(key("/a/b.csv.gz, line 7"), Keys("b.csv.gz, line 7", "b.csv.gz"));
  EXPECT_EQ(key("b.h5, record 0"), Keys("b.h5, record 0", "b.h5"));
  EXPECT_EQ(key("x, y/rose/0001.jpg"), Keys("0001.jpg", "0001.jpg"));
  EXPECT_EQ(key("d/x.tar, member a/b.jpg"), Keys("x.tar, member a/b.jpg", "x.tar"));
}

TEST(SplitKey, PlacesArePinned) {
  // Python: (xxhash.xxh3_64_intdigest(struct.pack("<QQ", hash, seed)) >> 11) / 2**53
  EXPECT_DOUBLE_EQ(split_place(0, 0), 0.8150393007738989);
  EXPECT_DOUBLE_EQ(split_place(1, 0), 0.15213972808574683);
  EXPECT_DOUBLE_EQ(split_place(1, 7), 0.624667622396057);
}

TEST(SplitKey, PartsAreDisjointCompleteAndHaveAboutTheirShares) {
  constexpr int kSamples = 20000;
  std::vector<double> places(kSamples);
  for (std::size_t i = 0; i < places.size(); ++i) {
    places[i] = split_place(i, 3);
    ASSERT_TRUE(places[i] >= 0 && places[i] < 1);
  }
  const auto expect_parts = [&](const std::vector<std::pair<ChoiceOptions, bool>>& parts,
                                const std::vector<double>& shares) {
    std::map<std::uint32_t, int> seen;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const auto list = list_by_key(parts[i].first, parts[i].second, places);
      EXPECT_TRUE(std::ranges::is_sorted(list));
      // Five standard deviations of a binomial number.
      const double expected = shares[i] * kSamples;
      EXPECT_NEAR(static_cast<double>(list.size()), expected, 5 * std::sqrt(expected * (1 - shares[i])));
      for (const std::uint32_t sample : list) ++seen[sample];
    }
    EXPECT_EQ(seen.size(), places.size());
    for (const auto& [sample, count] : seen) EXPECT_EQ(count, 1) << sample;
  };
  const ChoiceOptions holdout{.part = Part::holdout, .holdout = 0.1};
  expect_parts({{holdout, false}, {holdout, true}}, {0.9, 0.1});
  std::vector<std::pair<ChoiceOptions, bool>> shares, folds;
  for (const auto& [first, last] : {std::pair{0.0, 0.7}, {0.7, 0.9}, {0.9, 1.0}})
    shares.push_back({{.part = Part::shares, .first_share = first, .last_share = last}, false});
  expect_parts(shares, {0.7, 0.2, 0.1});
  for (std::int64_t fold = 0; fold < 5; ++fold)
    folds.push_back({{.part = Part::fold, .folds = 5, .fold = fold}, true});
  expect_parts(folds, std::vector<double>(5, 0.2));
  ChoiceOptions fold{.part = Part::fold, .folds = 5, .fold = 2};
  expect_parts({{fold, false}, {fold, true}}, {0.8, 0.2});
}

class SplitKeysOfTable : public FolderTest {
 protected:
  std::map<std::string, double> places(const std::string& file, SplitKey key) const {
    const auto data = open_dataset(
        "csv", params_for("csv", {{"path", file}, {"header", "true"}, {"key_column", "id"}}), folder_);
    const std::vector<double> all = split_places(*data, key, 5);
    std::map<std::string, double> by_feature;
    const std::vector<float> features = features_of(*data);
    for (std::size_t i = 0; i < all.size(); ++i) by_feature[std::to_string(features[i])] = all[i];
    return by_feature;
  }
};

TEST_F(SplitKeysOfTable, APlaceStaysWhenRowsAreAddedAndMoved) {
  write("a.csv", "id,x,y\nann,1,0\nbob,2,1\n\"c,d\",3,0\n");
  write("b.csv", "id,x,y\n\"c,d\",3,0\nnew,9,1\nbob,2,1\nann,1,0\n");
  const auto before = places("a.csv", SplitKey::column), after = places("b.csv", SplitKey::column);
  EXPECT_EQ(after.size(), 4U);
  for (const auto& [x, place] : before) EXPECT_EQ(after.at(x), place) << x;
  std::set<double> different;
  for (const auto& [x, place] : after) different.insert(place);
  EXPECT_EQ(different.size(), 4U);
}

TEST_F(SplitKeysOfTable, BadRowsTakeTheirKeysWithThem) {
  write("a.csv", "id,x,y\nann,1,0\nbad,oops,1\nbob,2,1\n");
  const auto data = open_dataset("csv",
                                 params_for("csv", {{"path", "a.csv"},
                                                    {"header", "true"},
                                                    {"key_column", "id"},
                                                    {"bad_records", "skip"},
                                                    {"max_bad_records", "1"}}),
                                 folder_);
  write("b.csv", "id,x,y\nann,1,0\nbob,2,1\n");
  const auto clean = open_dataset(
      "csv", params_for("csv", {{"path", "b.csv"}, {"header", "true"}, {"key_column", "id"}}), folder_);
  EXPECT_EQ(split_places(*data, SplitKey::column, 5), split_places(*clean, SplitKey::column, 5));
}

TEST_F(SplitKeysOfTable, WithoutTheColumnIsAnError) {
  write("a.csv", "id,x,y\nann,1,0\n");
  const auto data = open_dataset(
      "csv", params_for("csv", {{"path", "a.csv"}, {"header", "true"}, {"ignore", "id"}}), folder_);
  EXPECT_EQ(error_of([&] { split_places(*data, SplitKey::column, 0); }).kind(), ErrorKind::config);
}

}  // namespace
}  // namespace lockstep::testing
