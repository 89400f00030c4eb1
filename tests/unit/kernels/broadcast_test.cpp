// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/broadcast.h"

#include <gtest/gtest.h>

#include <limits>

#include "unit/kernels/kernel_testing.h"

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

TEST(Broadcast, SumsMatchTheReferenceWithTheSameBitsAtEveryLevel) {
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

/// Few values, so that there are ties; one NaN in some columns.
Values with_ties(std::int64_t count, bool nan) {
  Values a = random_values(count, 3);
  for (double& value : a) value = std::round(value * 2.0);
  if (nan)
    for (std::size_t i = 5; i < a.size(); i += 7) a[i] = std::nan("");
  return a;
}

TEST(Broadcast, TheFirstOfSeveralMaximaCountsAndTheFirstNanBeforeThem) {
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

}  // namespace
}  // namespace lockstep
