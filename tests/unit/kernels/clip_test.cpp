// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "unit/kernels/clip_testing.h"

#include <limits>

namespace lockstep {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity(),
                kNan = std::numeric_limits<float>::quiet_NaN();

ClipNumbers measure(const ClipKernels& kernels, const ClipCase& c, const Floats& g, ClipNorms norms = {}) {
  ClipNumbers numbers;
  numbers.sums.resize(c.blocks.size(), -1);
  numbers.squares.resize(c.variables.size(), -1);
  numbers.factors.resize(c.variables.size(), -1);
  kernels.square_blocks(TestLane(), c.num_blocks(), c.blocks.data(), g.data(), numbers.sums.data());
  kernels.factors(TestLane(), c.num_variables(), c.variables.data(), numbers.sums.data(), norms,
                  numbers.squares.data(), numbers.factors.data(), &numbers.totals);
  return numbers;
}

/// The sum of squares by brute force, in long double.
long double squares_of(const ClipCase& c, const Floats& g, std::size_t v) {
  long double sum = 0;
  for (std::int64_t i = 0; i < c.counts[v]; ++i) {
    const long double value = g[static_cast<std::size_t>(c.offsets[v] + i)];
    sum += value * value;
  }
  return sum;
}

TEST(Clip, NormsMatchBruteForceAtEveryLevel) {
  const ClipCase c(kClipCounts);
  // The largest and smallest float32 scales, where squares overflow and vanish in float32.
  for (const double scale : {1.0, 3.4e38, 1e-38, 1e-44}) {
    const Floats g(random_values(c.elements, 1, -scale, scale));
    std::vector<ClipNumbers> found;
    for (const Level& level : levels()) {
      found.push_back(measure(level.clip, c, g));
      const ClipNumbers& numbers = found.back();
      EXPECT_EQ(numbers.totals.clipped, 0);
      long double all = 0;
      for (std::size_t v = 0; v < c.counts.size(); ++v) {
        const long double expected = squares_of(c, g, v);
        all += expected;
        // At most 64 numbers in a column and a tree of 5 levels; few blocks in a wide column and 8 levels.
        EXPECT_LE(std::abs(static_cast<double>(numbers.squares[v] - expected)),
                  1e-14 * static_cast<double>(expected))
            << level.name << " " << scale << " variable " << v;
        EXPECT_EQ(numbers.factors[v], -1) << "factors must stay unchanged";
      }
      EXPECT_LE(std::abs(numbers.totals.norm - static_cast<double>(std::sqrt(all))),
                1e-14 * numbers.totals.norm);
      EXPECT_GT(numbers.totals.norm, 0);
      EXPECT_EQ(numbers.sums, found.front().sums) << level.name;
      EXPECT_EQ(numbers.squares, found.front().squares) << level.name;
      EXPECT_EQ(numbers.totals.norm, found.front().totals.norm) << level.name;
    }
  }
}

TEST(Clip, GapsBetweenVariablesAreIgnored) {
  const ClipCase c({17, 3});
  for (const Level& level : levels()) {
    const Floats g(Values(static_cast<std::size_t>(c.elements), kNan));
    for (std::size_t i = 0; i < 17; ++i) g[i] = 2;
    for (std::size_t i = 0; i < 3; ++i) g[32 + i] = 3;
    EXPECT_EQ(measure(level.clip, c, g).totals.norm, std::sqrt(17.0 * 4 + 3 * 9)) << level.name;
  }
}

TEST(Clip, SparseRowsHaveTheSumsOfTheDenseTable) {
  for (const Level& level : levels())
    for (const TableShape& shape : kTableShapes) {
      const SomeRows some(shape.rows, shape.width, shape.share, 11);
      const ClipCase c({shape.rows * shape.width});
      const ClipNumbers whole = measure(level.clip, c, Floats(some.table));
      const Floats values(some.values);
      auto count = static_cast<std::int32_t>(some.rows.size());
      std::vector<std::int32_t> rows = some.rows;
      const SparseRows gradient{&count, rows.data(), values.data()};
      EXPECT_EQ(count > 0, whole.totals.norm > 0);
      for (const int parts : {1, 2, 3, 7, 1000})
        for (const bool backwards : {false, true}) {  // no block is written twice
          std::vector<double> sums(c.blocks.size(), 0.0);
          for (int i = 0; i < parts; ++i) {
            const int part = backwards ? parts - 1 - i : i;
            level.clip.square_rows(TestLane(), gradient, count * part / parts, count * (part + 1) / parts,
                                   shape.width, sums.data());
          }
          EXPECT_EQ(sums, whole.sums)
              << level.name << " " << shape.rows << "x" << shape.width << " in " << parts;
        }
      // Positions past the last row are ignored; the sums of other blocks stay unchanged.
      std::vector<double> sums(c.blocks.size(), -1.0);
      level.clip.square_rows(TestLane(), gradient, 0, shape.rows + 5, shape.width, sums.data());
      for (std::size_t b = 0; b < sums.size(); ++b)
        EXPECT_EQ(sums[b], whole.sums[b] == 0 ? -1.0 : whole.sums[b]) << "block " << b;
    }
}

// Section 2 of the rules: g c / max(norm, c); the average norm is the norm divided by the number of elements.
TEST(Clip, FactorsFollowTheRules) {
  ClipCase c({2, 1});
  for (const Level& level : levels()) {
    const Floats g(Values(static_cast<std::size_t>(c.elements)));
    g[0] = 3;
    g[1] = -4;
    g[16] = 12;
    ClipNumbers numbers = measure(level.clip, c, g, {ClipNorms::Which::all, 6.5});
    EXPECT_EQ(numbers.totals.norm, 13);
    EXPECT_EQ(numbers.totals.clipped, 1);
    EXPECT_EQ(numbers.factors, (std::vector<double>{0.5, 0.5}));
    numbers = measure(level.clip, c, g, {ClipNorms::Which::all, 13});
    EXPECT_EQ(numbers.totals.clipped, 0);
    EXPECT_EQ(numbers.factors, (std::vector<double>{1, 1}));

    c.variables[0].limit = 2;  // an average norm of 1: times the number of elements
    c.variables[1].limit = 13;
    numbers = measure(level.clip, c, g, {ClipNorms::Which::each, 0});
    EXPECT_EQ(numbers.factors, (std::vector<double>{2.0 / 5, 1}));
    EXPECT_EQ(numbers.totals.norm, 13);
    EXPECT_EQ(numbers.totals.clipped, 0.5);

    level.clip.clip_blocks(TestLane(), c.num_blocks(), c.blocks.data(), {numbers.factors.data()}, g.data());
    EXPECT_EQ(g[0], static_cast<float>(6.0 / 5));
    EXPECT_EQ(g[1], static_cast<float>(-8.0 / 5));
    EXPECT_EQ(g[16], 12);
  }
}

TEST(Clip, ZeroAndHugeAndTinyNormsAreSafe) {
  const ClipCase c({100});
  for (const Level& level : levels()) {
    const Floats zero(Values(112, 0.0));
    ClipNumbers numbers = measure(level.clip, c, zero, {ClipNorms::Which::all, 1e-300});
    EXPECT_EQ(numbers.factors[0], 1);
    // A factor below float32's range: 3e-45 and less.
    const Floats huge(random_values(112, 2, -3e38, 3e38));
    const Floats before = huge.copy();
    numbers = measure(level.clip, c, huge, {ClipNorms::Which::all, 1e-6});
    EXPECT_LT(numbers.factors[0], 1e-44);
    level.clip.clip_blocks(TestLane(), c.num_blocks(), c.blocks.data(), {numbers.factors.data()},
                           huge.data());
    const double norm = measure(level.clip, c, huge).totals.norm;
    EXPECT_NEAR(norm, 1e-6, 1e-6 * 1e-7);
    for (std::size_t i = 0; i < 100; ++i)
      EXPECT_EQ(huge[i], static_cast<float>(numbers.factors[0] * static_cast<double>(before[i])));
  }
}

TEST(Clip, ANonFiniteNormMakesItsElementsNan) {
  const ClipCase c({40, 2100, 5});
  for (const Level& level : levels())
    for (const float broken : {kInfinity, -kInfinity, kNan})
      for (const ClipNorms::Which which : {ClipNorms::Which::all, ClipNorms::Which::each}) {
        const Floats g(random_values(c.elements, 3, -1e-3, 1e-3));
        g[static_cast<std::size_t>(c.offsets[1]) + 2060] = broken;
        const ClipNumbers numbers = measure(level.clip, c, g, {which, 1});
        EXPECT_FALSE(std::isfinite(numbers.totals.norm));
        level.clip.clip_blocks(TestLane(), c.num_blocks(), c.blocks.data(), {numbers.factors.data()},
                               g.data());
        for (std::size_t v = 0; v < c.counts.size(); ++v)
          for (std::int64_t i = 0; i < c.counts[v]; ++i)
            ASSERT_EQ(std::isnan(g[static_cast<std::size_t>(c.offsets[v] + i)]),
                      which == ClipNorms::Which::all || v == 1)
                << level.name << " variable " << v << " element " << i;
      }
}

TEST(Clip, AFactorOfOneKeepsBitsAndOthersRoundOnce) {
  const ClipCase c(kClipCounts);
  const Floats g(random_values(c.elements, 4));
  std::vector<double> factors(c.variables.size(), 1.0);
  for (const Level& level : levels()) {
    const Floats same = g.copy(), scaled = g.copy();
    level.clip.clip_blocks(TestLane(), c.num_blocks(), c.blocks.data(), {factors.data()}, same.data());
    EXPECT_TRUE(same_bits(same, g)) << level.name;
    std::vector<double> mixed = factors;
    for (std::size_t v = 0; v < mixed.size(); v += 2) mixed[v] = 1.0 / 3;
    level.clip.clip_blocks(TestLane(), c.num_blocks(), c.blocks.data(), {mixed.data()}, scaled.data());
    Floats expected = g.copy();
    for (std::size_t v = 0; v < mixed.size(); ++v)
      for (std::int64_t i = 0; i < c.counts[v]; ++i) {
        float& value = expected[static_cast<std::size_t>(c.offsets[v] + i)];
        value = static_cast<float>(mixed[v] * static_cast<double>(value));
      }
    EXPECT_TRUE(same_bits(scaled, expected)) << level.name;
    EXPECT_FALSE(same_bits(scaled, g));
  }
}

TEST(Clip, ValuesAreClampedAndNanStays) {
  const ClipCase c({77});
  for (const Level& level : levels()) {
    const Floats g(random_values(c.elements, 5, -2, 2));
    g[5] = kInfinity;
    g[6] = -kInfinity;
    g[70] = kNan;
    g[71] = 0;
    const Floats before = g.copy();
    level.clip.clip_blocks(TestLane(), c.num_blocks(), c.blocks.data(), {nullptr, -0.5F, 1.25F}, g.data());
    for (std::size_t i = 0; i < 77; ++i)
      if (i == 70)
        EXPECT_TRUE(std::isnan(g[i])) << level.name;
      else
        EXPECT_EQ(g[i], std::max(std::min(before[i], 1.25F), -0.5F)) << level.name << " " << i;
    for (std::size_t i = 77; i < g.size(); ++i) EXPECT_EQ(g[i], before[i]) << "the gap";
  }
}

TEST(Clip, OnlyTheSelectedRowsAreClipped) {
  constexpr std::int64_t kWidth = 13;
  for (const Level& level : levels()) {
    std::int32_t count = 6;
    std::int32_t rows[] = {0, 3, 4, 9, 20, 21};
    const Floats values(random_values((count + 1) * kWidth, 6));
    const Floats before = values.copy();
    const SparseRows gradient{&count, rows, values.data()};
    const double factors[] = {7, 0.3};
    level.clip.clip_rows(TestLane(), gradient, 2, 4, kWidth, 1, {factors});
    level.clip.clip_rows(TestLane(), gradient, 5, 9, kWidth, 0, {nullptr, -0.1F, 0.2F});
    level.clip.clip_rows(TestLane(), gradient, 6, 9, kWidth, 1, {factors});
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::size_t k = i / kWidth;
      const float expected = k == 2 || k == 3 ? static_cast<float>(0.3 * static_cast<double>(before[i]))
                             : k == 5         ? std::max(std::min(before[i], 0.2F), -0.1F)
                                              : before[i];
      EXPECT_EQ(values[i], expected) << level.name << " " << i;
    }
  }
}

}  // namespace
}  // namespace lockstep
