// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/group_norm.h"

#include "unit/kernels/group_norm_testing.h"
#include "unit/kernels_cuda/cuda_testing.h"

namespace lockstep {
namespace {

class CudaGroupNorm : public GpuTest {};

TEST_F(CudaGroupNorm, MatchesTheReferenceAtAnyAddress) {
  constexpr double kEpsilon = 1e-3;
  for (const GroupNormShape& s : all_norm_shapes()) {
    const std::int64_t count = s.samples * s.positions * s.channels();
    const Values x = random_values(count, 1, -1.0, 3.0), dy = random_values(count, 2),
                 gamma = random_values(s.channels(), 3), beta = random_values(s.channels(), 4);
    const GroupNormReference expected = group_norm_reference(s, x, dy, gamma, beta, kEpsilon);
    std::vector<float> first;
    for (int shift : {0, 1}) {
      const CudaLane lane(gpu().group_norm.scratch_bytes(s));
      const DeviceFloats gx(x, shift), gdy(dy, shift), ggamma(gamma, shift), gbeta(beta, shift),
          y(count, shift), same(count, shift), statistics(2 * s.samples * s.groups), dx(count, shift),
          dgamma(s.channels(), shift), dbeta(s.channels(), shift);
      gpu().group_norm.forward(lane, s, gx.data(), kEpsilon, ggamma.data(), gbeta.data(), statistics.data(),
                               y.data());
      gpu().group_norm.forward(lane, s, gx.data(), kEpsilon, ggamma.data(), gbeta.data(), nullptr,
                               same.data());
      gpu().group_norm.backward(lane, s, gx.data(), gdy.data(), ggamma.data(), statistics.data(), dx.data(),
                                dgamma.data(), dbeta.data());
      const std::string what = fmt::format("{} shift {}", to_string(s), shift);
      expect_close(y.values(), expected.y, Values(expected.y.size(), 3.0), 16 * kRounding, 0.0, what + " y");
      expect_close(dx.values(), expected.dx, Values(expected.dx.size(), expected.largest_dx), 16 * kRounding,
                   1e-7, what + " dx");
      expect_close(dgamma.values(), expected.dgamma, expected.dgamma_terms, 70 * kRounding, 0.0,
                   what + " dgamma");
      expect_close(dbeta.values(), expected.dbeta, expected.dbeta_terms, 70 * kRounding, 0.0,
                   what + " dbeta");
      expect_same(same.host(), y.host(), what + " in inference");
      std::vector<float> all = y.host();
      for (const DeviceFloats* part : {&dx, &dgamma, &dbeta})
        for (float value : part->host()) all.push_back(value);
      if (shift == 0) first = all;
      expect_same(all, first, what + " elsewhere");
    }
  }
}

/// Sums that depend on their order even in double: next to 2^56, numbers are rounded to multiples of eight,
/// and 2^56 cancels.
TEST_F(CudaGroupNorm, TheOrderOfASumDoesNotDependOnTheAddress) {
  for (const std::int64_t width : {64, 132, 1500}) {
    Values x = random_values(width, 1, -100, 100);
    for (std::size_t i = 0; i < x.size(); i += 3) x[i] = i % 2 == 0 ? 0x1p56 : -0x1p56;
    const auto statistics_of = [&](const Values& numbers, int shift) {
      const GroupNormShape s{1, 1, 1, width};
      const CudaLane lane(gpu().group_norm.scratch_bytes(s));
      const DeviceFloats in(numbers, shift), y(width, shift), statistics(2);
      gpu().group_norm.forward(lane, s, in.data(), 1e-3, nullptr, nullptr, statistics.data(), y.data());
      return statistics.host();
    };
    const std::vector<float> first = statistics_of(x, 0);
    for (const int shift : {1, 2, 4}) expect_same(statistics_of(x, shift), first, std::to_string(width));
    EXPECT_NE(statistics_of({x.rbegin(), x.rend()}, 0), first)
        << "the test needs order-dependent sums, width " << width;
  }
}

TEST_F(CudaGroupNorm, L2NormalizeMatchesTheReference) {
  for (std::int64_t rows : {0, 1, 7})
    for (std::int64_t channels : {1, 3, 17, 64, 1500}) {
      Values x = random_values(rows * channels, 1);
      for (std::size_t i = 0; rows == 7 && i < static_cast<std::size_t>(channels); ++i)
        x[i] *= 1e-3;  // less than epsilon
      for (double& value : x) value = static_cast<double>(static_cast<float>(value));
      const Values dy = random_values(rows * channels, 2);
      const L2Reference expected = l2_reference(rows, channels, x, dy, 1e-3);
      const CudaLane lane(0);
      const DeviceFloats gx(x), gdy(dy), y(rows * channels), dx(rows * channels), kept(2 * rows);
      gpu().group_norm.l2_normalize(lane, rows, channels, gx.data(), 1e-3, kept.data(), y.data());
      gpu().group_norm.l2_normalize_backward(lane, rows, channels, y.data(), gdy.data(), kept.data(),
                                             dx.data());
      expect_close(y.values(), expected.y, absolute(expected.y), 4 * kRounding, 0.0, "y");
      expect_close(dx.values(), expected.dx, expected.terms, 16 * kRounding, 0.0, "dx");
    }
}

}  // namespace
}  // namespace lockstep
