// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/broadcast.h"

#include <gtest/gtest.h>

#include <limits>

#include "core/error.h"
#include "unit/kernels/stored_testing.h"

namespace lockstep {
namespace {

const std::vector<BroadcastShape> kShapes{{0, 3, 2},  {1, 1, 1},   {3, 1, 17},  {5, 17, 1},  {2, 3, 5},
                                          {2, 64, 3}, {1, 300, 8}, {3, 2, 100}, {2, 1000, 1}};

TEST(Broadcast, ProductsAndRepeatsAreRoundedOnce) {
  for (const Level& level : levels())
    for (const BroadcastShape& s : kShapes) {
      const std::int64_t count = s.outer * s.middle * s.inner;
      const Floats a(random_values(count, 1)), b(random_values(s.outer * s.inner, 2));
      Floats y(count), repeated(count);
      level.broadcast.multiply(TestLane(), s, a.data(), b.data(), y.data());
      level.broadcast.repeat(TestLane(), s, 0.3F, b.data(), repeated.data());
      for (std::int64_t i = 0; i < count; ++i) {
        const auto at = static_cast<std::size_t>(i),
                   small = static_cast<std::size_t>(i / (s.middle * s.inner) * s.inner + i % s.inner);
        EXPECT_EQ(y[at], a[at] * b[small]);
        EXPECT_EQ(repeated[at], 0.3F * b[small]);
      }
    }
}

TEST(Broadcast, SumsMatchTheReferenceAtEveryLevel) {
  for (const BroadcastShape& s : kShapes)
    for (const bool product : {false, true}) {
      const std::int64_t count = s.outer * s.middle * s.inner;
      const Floats a(random_values(count, 1)), b(random_values(count, 2));
      Values expected(static_cast<std::size_t>(s.outer * s.inner)), terms(expected.size());
      for (std::int64_t i = 0; i < count; ++i) {
        const auto at = static_cast<std::size_t>(i),
                   small = static_cast<std::size_t>(i / (s.middle * s.inner) * s.inner + i % s.inner);
        const double term = static_cast<double>(a[at]) * (product ? static_cast<double>(b[at]) : 1.0) * 0.25;
        expected[small] += term;
        terms[small] += std::abs(term);
      }
      std::vector<Floats> sums;
      for (const Level& level : levels()) {
        sums.emplace_back(s.outer * s.inner);
        level.broadcast.sum(TestLane(), s, 0.25, a.data(), product ? b.data() : nullptr, sums.back().data());
        expect_close(sums.back().values(), expected, terms, 66 * kRounding, 0.0, level.name);
        EXPECT_TRUE(same_bits(sums.back(), sums[0])) << level.name;
      }
    }
}

/// Few distinct values, so that there are ties; one NaN in some columns.
Values with_ties(std::int64_t count, bool nan) {
  Values a = random_values(count, 3);
  for (double& value : a) value = std::round(value * 2.0);
  if (nan)
    for (std::size_t i = 5; i < a.size(); i += 7) a[i] = std::nan("");
  return a;
}

TEST(Broadcast, TheFirstMaximumCountsAndNanBeatsNumbers) {
  for (const Level& level : levels())
    for (const BroadcastShape& s : kShapes)
      for (const bool nan : {false, true}) {
        const std::int64_t count = s.outer * s.middle * s.inner, small = s.outer * s.inner;
        const Floats a(with_ties(count, nan)), dy(random_values(small, 4));
        Floats y(small), again(small), dx(count);
        std::vector<std::int32_t> at(static_cast<std::size_t>(small));
        level.broadcast.maximum(TestLane(), s, a.data(), y.data(), at.data());
        level.broadcast.maximum(TestLane(), s, a.data(), again.data(), nullptr);
        level.broadcast.maximum_backward(TestLane(), s, dy.data(), at.data(), dx.data());
        EXPECT_TRUE(same_bits(y, again));
        for (std::int64_t column = 0; column < small; ++column) {
          const auto c = static_cast<std::size_t>(column);
          const auto of = [&](std::int64_t m) {
            return static_cast<std::size_t>((column / s.inner * s.middle + m) * s.inner + column % s.inner);
          };
          std::int64_t best = 0;
          for (std::int64_t m = 1; m < s.middle; ++m) {
            if (std::isnan(a[of(best)])) break;
            if (std::isnan(a[of(m)]) || a[of(m)] > a[of(best)]) best = m;
          }
          EXPECT_EQ(at[c], best) << level.name;
          EXPECT_EQ(std::memcmp(&y[c], &a[of(best)], sizeof(float)), 0);
          for (std::int64_t m = 0; m < s.middle; ++m) EXPECT_EQ(dx[of(m)], m == best ? dy[c] : 0.0F);
        }
      }
}

template <typename T>
void expect_those_of_float32(const Level& level, const BroadcastShape& s, int shift) {
  const std::string what = fmt::format("{} {}x{}x{} shift {}", level.name, s.outer, s.middle, s.inner, shift);
  const std::int64_t count = s.outer * s.middle * s.inner, small = s.outer * s.inner;
  const BroadcastKernels& k = level.broadcast;
  const TestLane lane;
  const Stored<T> a(with_ties(count, true), shift), b(random_values(small, 2), shift),
      other(random_values(count, 1), shift);
  const Floats factors(random_values(small, 6)), wide_a = a.widened(), wide_b = b.widened(),
                                                 wide_other = other.widened();
  const auto compare = [&](std::int64_t size, const char* name, const auto& run) {
    Stored<T> y(size, shift);
    const Floats expected(size);
    run(ConstData(a.data()), ConstData(b.data()), ConstData(other.data()), Data(y.data()));
    run(ConstData(wide_a.data()), ConstData(wide_b.data()), ConstData(wide_other.data()),
        Data(expected.data()));
    expect_rounded(y, expected, fmt::format("{} {}", name, what));
  };
  using C = ConstData;
  compare(count, "product", [&](C, C x, C z, Data y) { k.multiply(lane, s, z, x, y); });
  compare(count, "product with float32",
          [&](C, C, C z, Data y) { k.multiply(lane, s, z, factors.data(), y); });
  compare(count, "repeated", [&](C, C x, C, Data y) { k.repeat(lane, s, 0.3F, x, y); });
  compare(small, "sum", [&](C, C, C z, Data y) { k.sum(lane, s, 0.3, z, nullptr, y); });
  compare(small, "sum of products", [&](C, C, C z, Data y) { k.sum(lane, s, 0.3, z, z, y); });
  compare(small, "maximum", [&](C x, C, C, Data y) { k.maximum(lane, s, x, y, nullptr); });
  std::vector<std::int32_t> at(static_cast<std::size_t>(small)), expected_at(at.size());
  compare(small, "maximum and its place", [&](C x, C, C, Data y) {
    k.maximum(lane, s, x, y, (x.type() == DType::f32 ? expected_at : at).data());
  });
  EXPECT_EQ(at, expected_at) << what;
  compare(count, "gradient of the maximum",
          [&](C, C x, C, Data y) { k.maximum_backward(lane, s, x, at.data(), y); });
}

TEST(Broadcast, In16BitsIsFloat32RoundedOnce) {
  for (const Level& level : levels())
    for (const BroadcastShape& s : kShapes)
      for (int shift : {0, 1}) {
        expect_those_of_float32<BFloat16>(level, s, shift);
        expect_those_of_float32<Float16>(level, s, shift);
      }
}

}  // namespace
}  // namespace lockstep
