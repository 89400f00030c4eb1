// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "unit/kernels/distribution_testing.h"
#include "unit/kernels_cuda/cuda_testing.h"

namespace lockstep {
namespace {

class CudaDistribution : public GpuTest {
 protected:
  template <typename T>
  static MeasuredPieces of(const OnDevice<T>& x, std::size_t count, const float* minus = nullptr,
                           DistributionBounds bounds = {}) {
    MeasuredPieces found(count);
    const CudaLane lane;
    const OnDevice<std::uint32_t> buckets(found.buckets);
    const OnDevice<Distribution> pieces(static_cast<std::int64_t>(found.pieces.size()));
    gpu().distribution.measure(lane, static_cast<std::int64_t>(count), ConstData(x.data()), minus, bounds,
                               buckets.data(), pieces.data());
    found.buckets = buckets.host();
    found.pieces = pieces.host();
    return found;
  }
};

TEST_F(CudaDistribution, MatchesBruteForce) {
  std::vector<float> all = numbers_of_all_magnitudes(40000);
  for (const std::size_t count : {std::size_t{1}, std::size_t{300}, std::size_t{16384}, all.size()}) {
    const std::vector<float> x(all.end() - static_cast<std::ptrdiff_t>(count), all.end());
    expect_like(of(DeviceFloats(x), count), brute_force(x));
  }
  all[7] = std::numeric_limits<float>::quiet_NaN();
  all[20000] = -std::numeric_limits<float>::infinity();
  expect_like(of(DeviceFloats(all), all.size()), brute_force(all));
}

TEST_F(CudaDistribution, TakesDifferencesBoundsAnd16Bits) {
  const Values a = random_values(20001, 1), b = random_values(20001, 2);
  const std::vector<float> x(a.begin(), a.end()), minus(b.begin(), b.end());
  std::vector<float> differences(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) differences[i] = x[i] - minus[i];
  const DistributionBounds bounds{-0.5F, 0.25F};
  expect_like(of(DeviceFloats(x), x.size(), DeviceFloats(minus).data(), bounds),
              brute_force(differences, bounds));
  std::vector<BFloat16> stored;
  std::vector<float> widened;
  for (const float number : x) {
    stored.push_back(from_float<BFloat16>(number));
    widened.push_back(to_float(stored.back()));
  }
  expect_like(of(OnDevice<BFloat16>(stored), x.size()), brute_force(widened));
}

}  // namespace
}  // namespace lockstep
