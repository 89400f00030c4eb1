// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/group_norm.h"

#include <algorithm>

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

/// Sums that depend on their order even in double: next to 2^58, the sum of a pack, numbers are rounded to
/// multiples of 64, and 2^58 cancels.
TEST_F(CudaGroupNorm, TheOrderOfASumDoesNotDependOnTheAddress) {
  for (const std::int64_t width : {64, 144, 1512}) {
    Values x = random_values(width, 1, -100, 100);
    for (std::size_t i = 0; i < x.size(); ++i)
      if (i / 4 % 3 == 0) x[i] = i / 4 % 2 == 0 ? 0x1p56 : -0x1p56;
    const auto statistics_of = [&](const Values& numbers, int shift) {
      const GroupNormShape s{1, 1, 1, width};
      const CudaLane lane(gpu().group_norm.scratch_bytes(s));
      const DeviceFloats in(numbers, shift), y(width, shift), statistics(2);
      gpu().group_norm.forward(lane, s, in.data(), 1e-3, nullptr, nullptr, statistics.data(), y.data());
      return statistics.host();
    };
    const std::vector<float> first = statistics_of(x, 0);
    for (const int shift : {1, 2, 4}) expect_same(statistics_of(x, shift), first, std::to_string(width));
    bool depends = false;
    for (std::ptrdiff_t pack = 0; pack < 12; ++pack) {  // exchanged with the next one
      Values other = x;
      const auto begin = other.begin() + 4 * pack;
      std::swap_ranges(begin, begin + 4, begin + 4);
      depends = depends || statistics_of(other, 0) != first;
    }
    EXPECT_TRUE(depends) << "the test needs order-dependent sums, width " << width;
  }
}

/// Rows and widths at the borders of what a thread, a warp and a block have: one number, packs, 1024 columns
/// of a warp, 8192 of a block; and each output alone.
TEST_F(CudaGroupNorm, LayerNormBackwardAtTheBordersOfItsTiles) {
  for (const auto& [rows, width] : {std::pair<int, int>{1, 1},
                                    {1, 4},
                                    {2, 8},
                                    {7, 124},
                                    {8, 128},
                                    {9, 260},
                                    {2, 1020},
                                    {9, 1023},
                                    {65, 1024},
                                    {1, 1028},
                                    {3, 2052},
                                    {2, 8192},
                                    {2, 8196},
                                    {2113, 4},
                                    {4300, 12}}) {
    const GroupNormShape s{.samples = rows, .width = width};
    const std::int64_t count = s.samples * s.width;
    const Values x = random_values(count, 1, -1.0, 3.0), dy = random_values(count, 2),
                 gamma = random_values(s.width, 3), beta = random_values(s.width, 4);
    const GroupNormReference expected = group_norm_reference(s, x, dy, gamma, beta, 1e-3);
    const CudaLane lane(gpu().group_norm.scratch_bytes(s));
    const DeviceFloats gx(x), gdy(dy), ggamma(gamma), gbeta(beta), y(count), statistics(2 * s.samples),
        dx(count), dgamma(s.width), dbeta(s.width), dx_alone(count), dgamma_alone(s.width),
        dbeta_alone(s.width);
    const GroupNormKernels& k = gpu().group_norm;
    k.forward(lane, s, gx.data(), 1e-3, ggamma.data(), gbeta.data(), statistics.data(), y.data());
    const auto backward = [&](Data to_dx, float* to_dgamma, float* to_dbeta) {
      k.backward(lane, s, gx.data(), gdy.data(), ggamma.data(), statistics.data(), to_dx, to_dgamma,
                 to_dbeta);
    };
    backward(dx.data(), dgamma.data(), dbeta.data());
    backward(dx_alone.data(), nullptr, nullptr);
    backward(nullptr, dgamma_alone.data(), nullptr);
    backward(nullptr, nullptr, dbeta_alone.data());
    const std::string what = to_string(s);
    // A term's xhat loses digits where x is near the mean.
    const double of_terms = 4 * kRounding * static_cast<double>(rows);
    expect_close(dx.values(), expected.dx, Values(expected.dx.size(), expected.largest_dx), 16 * kRounding,
                 1e-7, what + " dx");
    expect_close(dgamma.values(), expected.dgamma, expected.dgamma_terms, 70 * kRounding, of_terms,
                 what + " dgamma");
    expect_close(dbeta.values(), expected.dbeta, expected.dbeta_terms, 70 * kRounding, 0.0, what + " dbeta");
    expect_same(dx_alone.host(), dx.host(), what + " dx alone");
    expect_same(dgamma_alone.host(), dgamma.host(), what + " dgamma alone");
    expect_same(dbeta_alone.host(), dbeta.host(), what + " dbeta alone");
  }
}

/// At most 64 terms of a sum over rows are added in float32, however many rows there are. All terms are equal
/// and rounded upwards or downwards alike, so a longer float32 sum would be wrong by much more.
TEST_F(CudaGroupNorm, SumsOverManyRowsStayExact) {
  const GroupNormShape s{.samples = 64 * 2112 + 1, .width = 4};
  const CudaLane lane(gpu().group_norm.scratch_bytes(s));
  const DeviceFloats x(Values(static_cast<std::size_t>(s.samples * s.width))),
      dy(Values(static_cast<std::size_t>(s.samples * s.width), 0.1)),
      statistics(Values(static_cast<std::size_t>(2 * s.samples), 1.0)), dbeta(s.width);
  gpu().group_norm.backward(lane, s, x.data(), dy.data(), nullptr, statistics.data(), nullptr, nullptr,
                            dbeta.data());
  const double expected = static_cast<double>(0.1F) * static_cast<double>(s.samples);
  for (const double sum : dbeta.values()) EXPECT_NEAR(sum, expected, expected * 32 * kRounding);
}

/// A row's numbers are the same in a whole batch and in parts of it.
template <typename T>
void expect_rows_alone(std::int64_t width) {
  constexpr std::int64_t kRows = 2113, kParts[] = {1, 3, 9, 2100};
  const auto shape = [&](std::int64_t rows) { return GroupNormShape{.samples = rows, .width = width}; };
  const std::int64_t count = kRows * width;
  std::vector<T> x, dy;
  for (const double value : random_values(count, 1, -1.0, 3.0))
    x.push_back(from_float<T>(static_cast<float>(value)));
  for (const double value : random_values(count, 2)) dy.push_back(from_float<T>(static_cast<float>(value)));
  const CudaLane lane(gpu().group_norm.scratch_bytes(shape(kRows)));
  const OnDevice<T> gx(x), gdy(dy), y(count), dx(count), y_parts(count), dx_parts(count);
  const DeviceFloats gamma(random_values(width, 3)), beta(random_values(width, 4)), statistics(2 * kRows),
      dgamma(width), dbeta(width);
  const auto run = [&](std::int64_t first, std::int64_t rows, const OnDevice<T>& to_y,
                       const OnDevice<T>& to_dx) {
    const std::int64_t at = first * width;
    float* const kept = statistics.data() + 2 * first;
    gpu().group_norm.forward(lane, shape(rows), gx.data() + at, 1e-3, gamma.data(), beta.data(), kept,
                             to_y.data() + at);
    gpu().group_norm.backward(lane, shape(rows), gx.data() + at, gdy.data() + at, gamma.data(), kept,
                              to_dx.data() + at, dgamma.data(), dbeta.data());
  };
  run(0, kRows, y, dx);
  std::int64_t first = 0;
  for (const std::int64_t rows : kParts) {
    run(first, rows, y_parts, dx_parts);
    first += rows;
  }
  ASSERT_EQ(first, kRows);
  const auto widened = [](const OnDevice<T>& numbers) {
    std::vector<float> wide;
    for (const T number : numbers.host()) wide.push_back(to_float(number));
    return wide;
  };
  expect_same(widened(y_parts), widened(y), fmt::format("y of width {}", width));
  expect_same(widened(dx_parts), widened(dx), fmt::format("dx of width {}", width));
}
TEST_F(CudaGroupNorm, ARowDoesNotDependOnTheOtherRows) {
  for (const std::int64_t width : {12, 264}) {
    expect_rows_alone<float>(width);
    expect_rows_alone<BFloat16>(width);
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
