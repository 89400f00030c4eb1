// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Histograms of numbers of a program: moments, buckets, and what is no number.
#include "io/histogram.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "checkpoint_testing.h"
#include "core/error.h"
#include "io/event_reader.h"
#include "io/summary_writer.h"

namespace lockstep {
namespace {

using testing::CheckpointFolder;

/// How many numbers are in the bucket with this upper limit or, where buckets are merged, in the one that it
/// is in.
double count_below(const HistogramData& data, double limit) {
  double count = 0;
  for (std::size_t i = 0; i < data.limits.size() && data.limits[i] <= limit; ++i) count += data.counts[i];
  return count;
}

TEST(HistogramValues, HaveTheMomentsAndTheBucketsOfTheNumbers) {
  const std::vector<float> numbers = {-2, 0, 0, 0.5F, 3, 3, 3, 100};
  const std::vector<SummaryValue> values = histogram_values("own", std::span<const float>(numbers));
  ASSERT_EQ(values.size(), 1U);
  EXPECT_EQ(values[0].tag, "own");
  const auto& data = std::get<HistogramData>(values[0].value);
  EXPECT_EQ(data.min, -2);
  EXPECT_EQ(data.max, 100);
  EXPECT_EQ(data.num, 8);
  EXPECT_EQ(data.sum, 107.5);
  EXPECT_EQ(data.sum_squares, 4 + 0.25 + 27 + 10000);
  EXPECT_EQ(std::accumulate(data.counts.begin(), data.counts.end(), 0.0), 8);
  EXPECT_EQ(count_below(data, 0), 1) << "0 is in the bucket that begins with it";
  EXPECT_EQ(count_below(data, 1e-12), 3);
  EXPECT_EQ(count_below(data, 1), 4);
  EXPECT_EQ(count_below(data, 10), 7);
  // A bucket is at most a tenth wide.
  for (std::size_t i = 1; i < data.limits.size(); ++i)
    if (data.counts[i] == 3 && data.limits[i] > 1) {
      EXPECT_LE(data.limits[i - 1], 3);
      EXPECT_LE(data.limits[i], 3 * 1.1 * (1 + 1e-12));
    }
}

TEST(HistogramValues, OfDoublesAreThoseOfTheSameFloats) {
  const std::vector<float> floats = {-1, 0.25F, 1e30F, 7};
  const std::vector<double> doubles(floats.begin(), floats.end());
  const auto a = histogram_values("x", std::span<const float>(floats)),
             b = histogram_values("x", std::span<const double>(doubles));
  const auto& left = std::get<HistogramData>(a[0].value);
  const auto& right = std::get<HistogramData>(b[0].value);
  EXPECT_EQ(left.limits, right.limits);
  EXPECT_EQ(left.counts, right.counts);
  EXPECT_EQ(left.counts.back(), 1) << "1e30 is beyond the last edge";
}

TEST(HistogramValues, CountWhatIsNotFiniteApart) {
  const std::vector<double> numbers = {1, std::numeric_limits<double>::quiet_NaN(),
                                       -std::numeric_limits<double>::infinity()};
  const auto values = histogram_values("x", std::span<const double>(numbers));
  ASSERT_EQ(values.size(), 2U);
  EXPECT_EQ(std::get<HistogramData>(values[0].value).num, 1);
  EXPECT_EQ(std::get<HistogramData>(values[0].value).sum, 1);
  EXPECT_EQ(values[1].tag, "x/not_finite");
  EXPECT_EQ(std::get<HistogramData>(histogram_values("x", std::span<const double>())[0].value).num, 0);
}

TEST(SummaryWriter, AddHistogramTakesNumbers) {
  const CheckpointFolder folder;
  SummaryWriter writer(folder / "events");
  const std::vector<float> floats = {1, 2, 3};
  const std::vector<double> doubles = {4, 5};
  writer.add_histogram("floats", 7, floats);
  writer.add_histogram("doubles", 8, doubles);
  const std::string path = writer.path();
  writer.close();
  EventReader reader(path);
  std::vector<std::string> found;
  while (const auto event = reader.next())
    for (const EventValue& value : event->values)
      if (const auto* const data = std::get_if<HistogramData>(&value.data))
        found.push_back(fmt::format("{} {} {}", value.tag, event->step, data->sum));
  EXPECT_THAT(found, ::testing::ElementsAre("floats 7 6", "doubles 8 9"));
}

}  // namespace
}  // namespace lockstep
