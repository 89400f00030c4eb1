// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/fingerprint.h"

#include <bit>
#include <cmath>
#include <limits>
#include <set>

#include "unit/kernels_cuda/cuda_testing.h"

namespace lockstep {
namespace {

class CudaFingerprint : public GpuTest {
 protected:
  static Fingerprint of(const std::vector<float>& values) {
    const DeviceFloats numbers(values);
    const CudaLane lane;
    const OnDevice<Fingerprint> result(1);
    gpu().fingerprint.fingerprint(lane, static_cast<std::int64_t>(values.size()), numbers.data(),
                                  result.data());
    return result.host()[0];
  }
};

// Counts for more than one block and for more than the largest grid, with and without a remainder after the
// fours.
TEST_F(CudaFingerprint, DependsOnEveryBitAndPosition) {
  for (const std::int64_t count : {1, 3, 4, 1023, 4100, 1'300'003}) {
    const Values random = random_values(count, 1);
    const std::vector<float> values(random.begin(), random.end());
    const Fingerprint found = of(values);
    EXPECT_EQ(found.broken, 0U);
    EXPECT_EQ(of(values).hash, found.hash);
    std::set<std::uint64_t> hashes{found.hash};
    const std::set<std::int64_t> places{0, count / 2, count - 1};
    for (const std::int64_t at : places) {
      for (const std::uint32_t bit : {0U, 31U}) {
        std::vector<float> changed = values;
        float& number = changed[static_cast<std::size_t>(at)];
        number = std::bit_cast<float>(std::bit_cast<std::uint32_t>(number) ^ (1U << bit));
        hashes.insert(of(changed).hash);
      }
    }
    if (count > 1) {
      std::vector<float> swapped = values;
      std::swap(swapped.front(), swapped.back());
      hashes.insert(of(swapped).hash);
    }
    EXPECT_EQ(hashes.size(), 1 + 2 * places.size() + (count > 1 ? 1 : 0)) << count;
  }
  EXPECT_NE(of(std::vector<float>(8, 0.0F)).hash, of(std::vector<float>(9, 0.0F)).hash);
}

TEST_F(CudaFingerprint, FindsANonFiniteNumber) {
  for (const float broken : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                             std::numeric_limits<float>::quiet_NaN()})
    for (const std::size_t count : {1U, 7U, 4100U})
      for (const std::size_t at : {std::size_t{0}, count / 2, count - 1}) {
        std::vector<float> values(count, std::numeric_limits<float>::max());
        EXPECT_EQ(of(values).broken, 0U);
        values[at] = broken;
        EXPECT_EQ(of(values).broken, 1U) << count << " " << at;
        Fingerprint on_cpu{};
        cpu_kernels().fingerprint.fingerprint(TestLane(), static_cast<std::int64_t>(count), values.data(),
                                              &on_cpu);
        EXPECT_EQ(on_cpu.broken, 1U);
      }
}

}  // namespace
}  // namespace lockstep
