// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/elementwise.h"

#include <gtest/gtest.h>

#include <bit>
#include <limits>

#include "kernels/box_muller.h"
#include "unit/kernels/kernel_testing.h"

namespace lockstep {
namespace {

const std::vector<std::int64_t> kCounts{0, 1, 3, 15, 16, 17, 63, 64, 100, 1001};
constexpr double kSumError = (64 + 2) * kRounding;  // at most 64 additions in float32

TEST(Elementwise, EachElementIsRoundedOnce) {
  for (const Level& level : levels())
    for (std::int64_t count : kCounts) {
      const Floats a(random_values(count, 1)), b(random_values(count, 2));
      Floats y(count), z(count), s(count), r(count), back(count), into = a.copy();
      const TestLane lane;
      level.elementwise.add(lane, count, a.data(), b.data(), y.data(), false);
      level.elementwise.add(lane, count, a.data(), b.data(), z.data(), true);
      level.elementwise.scale(lane, count, 0.3F, a.data(), s.data());
      level.elementwise.relu(lane, count, a.data(), r.data());
      level.elementwise.relu_backward(lane, count, b.data(), r.data(), back.data());
      level.elementwise.accumulate(lane, count, into.data(), b.data());
      for (std::size_t i = 0; i < a.size(); ++i) {
        EXPECT_EQ(y[i], a[i] + b[i]);
        EXPECT_EQ(into[i], a[i] + b[i]);
        EXPECT_EQ(z[i], std::max(a[i] + b[i], 0.0F));
        EXPECT_EQ(s[i], 0.3F * a[i]);
        EXPECT_EQ(r[i], std::max(a[i], 0.0F));
        EXPECT_EQ(back[i], a[i] > 0.0F ? b[i] : 0.0F);
      }
    }
}

TEST(Elementwise, BlendRoundsEachOperation) {
  for (const Level& level : levels())
    for (std::int64_t count : kCounts) {
      const Floats a(random_values(count, 1)), b(random_values(count, 2));
      const Floats into = a.copy();
      level.elementwise.blend(TestLane(), count, into.data(), b.data(), 0.3F);
      for (std::size_t i = 0; i < a.size(); ++i) {
        const float difference = b[i] - a[i], part = 0.3F * difference;
        EXPECT_EQ(into[i], a[i] + part);
      }
    }
}

TEST(Elementwise, ExchangeSwapsAll) {
  for (const Level& level : levels())
    for (std::int64_t count : kCounts) {
      const Floats a(random_values(count, 1)), b(random_values(count, 2));
      const Floats left = a.copy(), right = b.copy();
      level.elementwise.exchange(TestLane(), count, left.data(), right.data());
      for (std::size_t i = 0; i < a.size(); ++i) {
        EXPECT_EQ(left[i], b[i]);
        EXPECT_EQ(right[i], a[i]);
      }
    }
}

/// Numbers of all magnitudes, including some outside the 16-bit types' ranges.
std::vector<float> numbers_to_convert() {
  std::vector<float> values{0.0F,       -0.0F,     65519.0F, 65520.0F, 0x1p-25F,
                            0x1.8p-25F, 0x1p-130F, INFINITY, -INFINITY};
  values.push_back(std::numeric_limits<float>::quiet_NaN());
  for (std::uint32_t bits = 0; bits < 0xFF000000U; bits += 0x000FF731U)
    values.push_back(std::bit_cast<float>(bits));
  return values;
}

template <typename T>
void expect_conversions(const Level& level) {
  const std::vector<float> values = numbers_to_convert();
  const auto count = static_cast<std::int64_t>(values.size());
  std::vector<T> narrow(values.size());
  std::vector<float> wide(values.size());
  level.elementwise.convert(TestLane(), count, values.data(), narrow.data());
  level.elementwise.convert(TestLane(), count, narrow.data(), wide.data());
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(narrow[i].bits, from_float<T>(values[i]).bits) << level.name << " " << values[i];
    EXPECT_EQ(std::bit_cast<std::uint32_t>(wide[i]), std::bit_cast<std::uint32_t>(to_float(narrow[i])));
  }
}

TEST(Elementwise, ConversionsMatchScalarBitsAtEveryLevel) {
  for (const Level& level : levels()) {
    expect_conversions<BFloat16>(level);
    expect_conversions<Float16>(level);
  }
}

TEST(Elementwise, ReluKeepsNan) {
  for (const Level& level : levels())
    for (std::int64_t count : {5, 40}) {
      Floats x(random_values(count, 3));
      x[4] = std::numeric_limits<float>::quiet_NaN();
      const Floats zero(count);
      level.elementwise.add(TestLane(), count, x.data(), zero.data(), x.data(), true);
      EXPECT_TRUE(std::isnan(x[4]));
      level.elementwise.relu(TestLane(), count, x.data(), x.data());
      EXPECT_TRUE(std::isnan(x[4]));
    }
}

struct Size {
  std::int64_t rows, channels;
};
const std::vector<Size> kSizes{{1, 1},   {5, 3},     {128, 10},  {4000, 16}, {65, 17},
                               {64, 64}, {300, 100}, {16, 1000}, {1000, 1},  {33, 192}};

TEST(Elementwise, MaskAndSumRows) {
  for (const Level& level : levels())
    for (Size size : kSizes)
      for (bool masked : {false, true})
        for (bool write : {false, true}) {
          const std::int64_t count = size.rows * size.channels;
          const Values dy = random_values(count, 4), y = random_values(count, 5);
          Values g(dy), sums(static_cast<std::size_t>(size.channels), 0.0), magnitude = sums;
          for (std::size_t i = 0; i < g.size(); ++i) {
            if (masked && !(y[i] > 0.0)) g[i] = 0.0;
            sums[i % sums.size()] += g[i];
            magnitude[i % sums.size()] += std::abs(g[i]);
          }
          const Floats dys(dy), ys(y);
          Floats out(count), column_sums(size.channels), in_place = dys.copy(), again(size.channels);
          const float* mask = masked ? ys.data() : nullptr;
          level.elementwise.mask_and_sum_rows(TestLane(), size.rows, size.channels, dys.data(), mask,
                                              write ? out.data() : nullptr, column_sums.data());
          const std::string what =
              level.name + " " + std::to_string(size.rows) + "x" + std::to_string(size.channels);
          expect_close(column_sums.values(), sums, magnitude, kSumError, 0.0, what);
          if (!write) continue;
          expect_close(out.values(), g, g, 0.0, 0.0, what);
          level.elementwise.mask_and_sum_rows(TestLane(), size.rows, size.channels, in_place.data(), mask,
                                              in_place.data(), again.data());
          EXPECT_TRUE(same_bits(in_place, out)) << what;
          EXPECT_TRUE(same_bits(again, column_sums)) << what;
        }
}

TEST(Elementwise, GlobalAverageAndItsGradient) {
  for (const Level& level : levels())
    for (Size size : kSizes) {
      const std::int64_t n = 3, count = n * size.rows * size.channels;
      const Values x = random_values(count, 6), dy = random_values(n * size.channels, 7);
      Values y(dy.size(), 0.0), magnitude(dy.size(), 0.0), dx(x.size());
      const double positions = static_cast<double>(size.rows);
      for (std::size_t i = 0; i < x.size(); ++i) {
        const auto width = static_cast<std::size_t>(size.channels);
        const std::size_t out = i / (static_cast<std::size_t>(size.rows) * width) * width + i % width;
        y[out] += x[i] / positions;
        magnitude[out] += std::abs(x[i]) / positions;
        dx[i] = dy[out] / positions;
      }
      const Floats xs(x), dys(dy);
      Floats ys(n * size.channels), dxs(count);
      level.elementwise.global_average(TestLane(), n, size.rows, size.channels, xs.data(), ys.data());
      level.elementwise.global_average_backward(TestLane(), n, size.rows, size.channels, dys.data(),
                                                dxs.data());
      expect_close(ys.values(), y, magnitude, kSumError, 0.0, "average " + level.name);
      expect_close(dxs.values(), dx, dx, 3 * kRounding, 0.0, "gradient " + level.name);
    }
}

TEST(Elementwise, DropoutUsesTheGlobalSample) {
  constexpr std::uint64_t kSeed = 0x123456789ABCDEFULL;
  const std::uint32_t purpose = philox_purpose("dropout1"), step = 41, first_sample = 1000;
  for (const Level& level : levels())
    for (std::int64_t features : {1, 4, 7, 64, 65, 300})
      for (float rate : {0.0F, 0.25F, 0.9F}) {
        const std::int64_t n = 5;
        const Floats x(random_values(n * features, 8, 0.5, 1.0));
        Floats y(n * features), tail(2 * features);
        level.elementwise.dropout(TestLane(), n, features, x.data(), rate, kSeed, purpose, step, first_sample,
                                  y.data());
        for (std::int64_t s = 0; s < n; ++s)
          for (std::int64_t e = 0; e < features; ++e) {
            const auto block =
                philox_words(kSeed, purpose, step, first_sample + static_cast<std::uint32_t>(s),
                             static_cast<std::uint32_t>(e / 4));
            const bool kept = philox_uniform(block[static_cast<std::size_t>(e % 4)]) >= rate;
            const auto i = static_cast<std::size_t>(s * features + e);
            EXPECT_EQ(y[i], kept ? x[i] * (1.0F / (1.0F - rate)) : 0.0F) << s << " " << e;
          }
        // Another microshard: samples 3 and 4 alone.
        level.elementwise.dropout(TestLane(), 2, features, x.data() + 3 * features, rate, kSeed, purpose,
                                  step, first_sample + 3, tail.data());
        EXPECT_EQ(std::memcmp(tail.data(), y.data() + 3 * features, tail.size() * sizeof(float)), 0);
      }
}

TEST(Elementwise, GaussianNoiseUsesTheGlobalSample) {
  constexpr std::uint64_t kSeed = 0x123456789ABCDEFULL;
  const std::uint32_t purpose = philox_purpose("noise1"), step = 41, first_sample = 1000;
  for (std::int64_t features : {1, 4, 7, 64, 65, 301}) {
    const std::int64_t n = 5;
    const Floats x(random_values(n * features, 8));
    std::vector<Floats> all;
    for (const Level& level : levels()) {
      Floats y(n * features), tail(2 * features), read(n * features);
      level.elementwise.gaussian_noise(TestLane(), n, features, x.data(), 0.5F, kSeed, purpose, step,
                                       first_sample, y.data());
      for (std::int64_t s = 0; s < n; ++s)
        for (std::int64_t e = 0; e < features; ++e) {
          const auto block = philox_words(kSeed, purpose, step, first_sample + static_cast<std::uint32_t>(s),
                                          static_cast<std::uint32_t>(e / 4));
          const auto pair = static_cast<std::size_t>(e % 4 / 2 * 2);
          const double z = philox_normal(block[pair], block[pair + 1])[static_cast<std::size_t>(e % 2)];
          const auto i = static_cast<std::size_t>(s * features + e);
          EXPECT_NEAR(static_cast<double>(y[i]), static_cast<double>(x[i]) + 0.5 * z, 8 * kRounding)
              << s << " " << e;
        }
      // Another microshard: samples 3 and 4 alone.
      level.elementwise.gaussian_noise(TestLane(), 2, features, x.data() + 3 * features, 0.5F, kSeed, purpose,
                                       step, first_sample + 3, tail.data());
      EXPECT_EQ(std::memcmp(tail.data(), y.data() + 3 * features, tail.size() * sizeof(float)), 0);
      // The step from the lane's step_word.
      Lane lane = TestLane();
      lane.step_word = &step;
      level.elementwise.gaussian_noise(lane, n, features, x.data(), 0.5F, kSeed, purpose, 5, first_sample,
                                       read.data());
      EXPECT_TRUE(same_bits(read, y));
      all.push_back(y.copy());
      EXPECT_TRUE(same_bits(y, all[0])) << level.name;
    }
  }
}

/// The extremes of both words: radii of log(2^-32) and of log(1), angles at and next to the quarters.
TEST(Elementwise, NormalNumbersAreCorrectAtTheExtremes) {
  for (std::uint32_t word0 : {0U, 1U, 0x7FFFFFFFU, 0x80000000U, 0xB504F333U, 0xFFFFFFFEU, 0xFFFFFFFFU})
    for (std::uint32_t word1 : {0U, 1U, 0x1FFFFFFFU, 0x20000000U, 0x40000000U, 0x60000000U, 0x80000000U,
                                0xA0000001U, 0xC0000000U, 0xE0000000U, 0xFFFFFFFFU}) {
      const auto expected = philox_normal(word0, word1);
      const double radius = std::sqrt(squared_radius(word0));
      const SineCosine angle = sine_cosine(word1);
      EXPECT_NEAR(radius * angle.cosine, expected[0], 1e-14);
      EXPECT_NEAR(radius * angle.sine, expected[1], 1e-14);
    }
}

TEST(Elementwise, DropoutReadsTheLanesStepWord) {
  for (const Level& level : levels()) {
    const Floats x(random_values(2 * 300, 8, 0.5, 1.0));
    Floats given(2 * 300), read(2 * 300), other(2 * 300);
    const std::uint32_t word = 41;
    Lane lane = TestLane();
    level.elementwise.dropout(lane, 2, 300, x.data(), 0.5F, 7, 1, word, 0, given.data());
    level.elementwise.dropout(lane, 2, 300, x.data(), 0.5F, 7, 1, 5, 0, other.data());
    lane.step_word = &word;
    level.elementwise.dropout(lane, 2, 300, x.data(), 0.5F, 7, 1, 5, 0, read.data());
    EXPECT_TRUE(same_bits(read, given));
    EXPECT_FALSE(same_bits(read, other));
  }
}

TEST(Elementwise, ZeroWritesZeros) {
  for (const Level& level : levels())
    for (std::int64_t count : {0, 1, 17, 1000}) {
      const Floats y(random_values(count + 1, 8, 0.5, 1.0), 1);
      const float guard = y[static_cast<std::size_t>(count)];
      level.elementwise.zero(TestLane(), count, y.data());
      for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) EXPECT_EQ(y[i], 0.0F);
      EXPECT_EQ(y[static_cast<std::size_t>(count)], guard);
    }
}

TEST(Elementwise, SameBitsAtEveryLevelAndAddress) {
  for (Size size : kSizes) {
    const std::int64_t count = size.rows * size.channels;
    const Values dy = random_values(count, 9), y = random_values(count, 10);
    Floats first_sums(size.channels), first_average(size.channels);
    bool first = true;
    for (const Level& level : levels())
      for (int shift : {0, 1, 5, 16}) {
        const Floats dys(dy, shift), ys(y, shift);
        Floats sums(size.channels), average(size.channels);
        level.elementwise.mask_and_sum_rows(TestLane(), size.rows, size.channels, dys.data(), ys.data(),
                                            nullptr, sums.data());
        level.elementwise.global_average(TestLane(), 1, size.rows, size.channels, dys.data(), average.data());
        if (first) {
          std::memcpy(first_sums.data(), sums.data(), sums.size() * sizeof(float));
          std::memcpy(first_average.data(), average.data(), average.size() * sizeof(float));
          first = false;
        }
        EXPECT_TRUE(same_bits(sums, first_sums)) << level.name << " " << shift;
        EXPECT_TRUE(same_bits(average, first_average)) << level.name << " " << shift;
      }
  }
}

}  // namespace
}  // namespace lockstep
