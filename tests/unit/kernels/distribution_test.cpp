// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/kernel_table.h"
#include "unit/kernels/distribution_testing.h"

namespace lockstep {
namespace {

MeasuredPieces measure(const DistributionKernels& kernels, const std::vector<float>& x,
                       const float* minus = nullptr, DistributionBounds bounds = {}) {
  MeasuredPieces found(x.size());
  kernels.measure(TestLane(), static_cast<std::int64_t>(x.size()), x.data(), minus, bounds,
                  found.buckets.data(), found.pieces.data());
  return found;
}

TEST(Distribution, HasTheBucketsOfTensorFlow) {
  const std::vector<double> limits = bucket_limits();
  ASSERT_EQ(limits.size(), static_cast<std::size_t>(kDistributionBuckets));
  EXPECT_EQ(limits[limits.size() - 2], 9.920775621859783e19);
  // A float32 equal to an edge would belong to other buckets for the two signs than the table says.
  for (const double limit : limits)
    EXPECT_TRUE(limit == 0 || static_cast<double>(static_cast<float>(limit)) != limit) << limit;
}

TEST(Distribution, MatchesBruteForceAtEveryLevel) {
  const std::vector<float> all = numbers_of_all_magnitudes(30000);
  for (const std::size_t count :
       {std::size_t{0}, std::size_t{1}, std::size_t{15}, std::size_t{17}, std::size_t{1023},
        std::size_t{1025}, std::size_t{16384}, std::size_t{16385}, all.size()}) {
    const std::vector<float> x(all.end() - static_cast<std::ptrdiff_t>(count), all.end());
    const MeasuredPieces expected = brute_force(x);
    std::vector<MeasuredPieces> found;
    for (const Level& level : levels()) {
      SCOPED_TRACE(level.name + " " + std::to_string(count));
      found.push_back(measure(level.distribution, x));
      expect_like(found.back(), expected);
      for (std::size_t p = 0; p < expected.pieces.size(); ++p) {
        EXPECT_EQ(found.back().pieces[p].sum, found.front().pieces[p].sum);
        EXPECT_EQ(found.back().pieces[p].sum_squares, found.front().pieces[p].sum_squares);
      }
    }
  }
}

TEST(Distribution, LeavesOutNumbersThatAreNotFinite) {
  std::vector<float> x = numbers_of_all_magnitudes(3000);
  for (std::size_t i = 1; i < x.size(); i += 977)
    x[i] = i % 2 == 0 ? std::numeric_limits<float>::quiet_NaN() : -std::numeric_limits<float>::infinity();
  for (const Level& level : levels()) expect_like(measure(level.distribution, x), brute_force(x));
  const std::vector<float> none(40, std::numeric_limits<float>::infinity());
  for (const Level& level : levels()) EXPECT_EQ(measure(level.distribution, none).pieces[0].finite, 0);
}

TEST(Distribution, TakesDifferencesAndCountsWhatIsBeyondBounds) {
  const Values a = random_values(20001, 1), b = random_values(20001, 2);
  const std::vector<float> x(a.begin(), a.end()), minus(b.begin(), b.end());
  std::vector<float> differences(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) differences[i] = x[i] - minus[i];
  differences[5] = x[5] - minus[5];
  const DistributionBounds bounds{-0.5F, differences[5]};
  const MeasuredPieces expected = brute_force(differences, bounds);
  EXPECT_GT(expected.pieces[0].beyond, 100);
  for (const Level& level : levels())
    expect_like(measure(level.distribution, x, minus.data(), bounds), expected);
}

template <typename T>
void takes_stored(DType type) {
  const std::vector<float> all = numbers_of_all_magnitudes(20000);
  std::vector<T> stored;
  std::vector<float> x;
  for (const float number : all) {
    stored.push_back(from_float<T>(number));
    x.push_back(to_float(stored.back()));
  }
  for (const Level& level : levels()) {
    MeasuredPieces found(x.size());
    level.distribution.measure(TestLane(), static_cast<std::int64_t>(x.size()),
                               ConstData(stored.data(), type), nullptr, {}, found.buckets.data(),
                               found.pieces.data());
    expect_like(found, brute_force(x));
  }
}

TEST(Distribution, TakesBothTypesOf16Bits) {
  takes_stored<BFloat16>(DType::bf16);
  takes_stored<Float16>(DType::f16);
}

TEST(Distribution, AddsToBuckets) {
  const std::vector<float> x(10, 1.0F);
  MeasuredPieces found(x.size());
  for (int i = 0; i < 3; ++i)
    cpu_kernels().distribution.measure(TestLane(), 10, x.data(), nullptr, {}, found.buckets.data(),
                                       found.pieces.data());
  EXPECT_EQ(*std::max_element(found.buckets.begin(), found.buckets.end()), 30U);
}

}  // namespace
}  // namespace lockstep
