// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/norm.h"

#include <gtest/gtest.h>

#include "unit/kernels/kernel_testing.h"

namespace lockstep {
namespace {

struct Size {
  std::int64_t rows, channels;
};
// Few and many channels, multiples of 64 or not; rows that fill blocks (64 panel rows) or not.
const std::vector<Size> kSizes{{0, 5},     {1, 1},    {1, 16},   {7, 3},    {65, 1},    {130, 10},
                               {1000, 16}, {333, 16}, {517, 32}, {300, 64}, {129, 96},  {70, 100},
                               {16, 1000}, {5, 512},  {4100, 3}, {64, 64},  {8192, 16}, {97, 130}};

std::string describe(const Level& level, Size size) {
  return level.name + " " + std::to_string(size.rows) + "x" + std::to_string(size.channels);
}

/// Means and sums of squared deviations, from NormKernels::moments.
void moments_of(const Level& level, std::int64_t rows, std::int64_t channels, const float* x, Values& mean,
                Values& m2) {
  Values leaf(static_cast<std::size_t>(1 + 2 * channels), -1.0);
  level.norm.moments(TestLane(), rows, channels, x, leaf.data());
  mean.assign(leaf.begin() + 1, leaf.begin() + 1 + channels);
  m2.assign(leaf.begin() + 1 + channels, leaf.end());
}

/// At most 64 float32 additions of values that were rounded a few times.
constexpr double kSumError = (64 + 6) * kRounding;

TEST(Norm, StatisticsMatchTwoPassesInDouble) {
  for (const Level& level : levels())
    for (Size size : kSizes) {
      const Values x = random_values(size.rows * size.channels, 1, -2.0, 3.0);
      const auto expected = reference::moments(size.rows, size.channels, x);
      Values mean(static_cast<std::size_t>(size.channels), -1.0), m2 = mean;
      const Floats data(x);
      moments_of(level, size.rows, size.channels, data.data(), mean, m2);
      const Values span(mean.size(), 3.0);
      expect_close(mean, expected.mean, span, kSumError, 0.0, "mean " + describe(level, size));
      expect_close(m2, expected.m2, expected.m2, 2 * kSumError, 9.0 * kSumError * kSumError,
                   "m2 " + describe(level, size));
    }
}

TEST(Norm, StatisticsSurviveALargeMean) {
  // E[x^2] - E[x]^2 in float32 would have no correct digit here, nor would it in blocks.
  for (const Level& level : levels())
    for (std::int64_t channels : {1, 16, 64, 70}) {
      const std::int64_t rows = 5000;
      const Values x = random_values(rows * channels, 2, 4095.0, 4097.0);
      const auto expected = reference::moments(rows, channels, x);
      Values mean(static_cast<std::size_t>(channels)), m2 = mean;
      const Floats data(x);
      moments_of(level, rows, channels, data.data(), mean, m2);
      // The numbers that are added differ by at most 2, so the errors are those without a mean.
      expect_close(mean, expected.mean, Values(mean.size(), 2.0), kSumError, 0.0, "mean");
      expect_close(m2, expected.m2, expected.m2, 12 * kSumError, 0.0, "m2");
    }
}

TEST(Norm, StatisticsOfBlocksWithDifferentMeans) {
  // Later blocks are centred on the mean of those before them, which is far away here.
  for (const Level& level : levels())
    for (std::int64_t channels : {1, 64}) {
      const std::int64_t rows = 20 * 64 * (channels == 1 ? 64 : 1);
      Values x = random_values(rows * channels, 9);
      for (std::size_t i = x.size() / 4; i < x.size(); ++i)
        x[i] = static_cast<float>(x[i] + (i < x.size() / 2 ? 1e4 : -1e3));
      const auto expected = reference::moments(rows, channels, x);
      Values mean(static_cast<std::size_t>(channels)), m2 = mean;
      const Floats data(x);
      moments_of(level, rows, channels, data.data(), mean, m2);
      expect_close(mean, expected.mean, Values(mean.size(), 1e4), kSumError, 0.0, "mean");
      expect_close(m2, expected.m2, expected.m2, 4 * kSumError, 0.0, "m2");
    }
}

TEST(Norm, StatisticsOfEqualNumbersAreExact) {
  for (const Level& level : levels())
    for (std::int64_t channels : {1, 16, 70})
      for (std::int64_t rows : {1, 3, 64, 100, 5000}) {
        const double value = static_cast<double>(12345.678F);
        const Floats data(Values(static_cast<std::size_t>(rows * channels), value));
        Values mean(static_cast<std::size_t>(channels)), m2 = mean;
        moments_of(level, rows, channels, data.data(), mean, m2);
        for (std::size_t c = 0; c < mean.size(); ++c) {
          EXPECT_EQ(static_cast<float>(mean[c]), 12345.678F) << level.name << " " << rows;
          EXPECT_LE(std::abs(mean[c] - value), 1e-15 * value) << level.name << " " << rows;
          EXPECT_GE(m2[c], 0.0) << level.name << " " << rows;
          EXPECT_LE(m2[c], 1e-12 * static_cast<double>(rows)) << level.name << " " << rows;
        }
      }
}

TEST(Norm, StatisticsOfNanAreNan) {
  for (const Level& level : levels()) {
    Floats x(random_values(1000 * 16, 3));
    x[16 * 700 + 5] = std::nanf("");
    Values mean(16), m2(16);
    moments_of(level, 1000, 16, x.data(), mean, m2);
    for (std::size_t c = 0; c < 16; ++c) {
      EXPECT_EQ(std::isnan(mean[c]), c == 5);
      EXPECT_EQ(std::isnan(m2[c]), c == 5);
    }
  }
}

TEST(Norm, NormalizeWithAndWithoutResidualAndRelu) {
  for (const Level& level : levels())
    for (Size size : kSizes)
      for (bool relu : {false, true})
        for (bool add : {false, true}) {
          const std::int64_t count = size.rows * size.channels;
          const Values x = random_values(count, 4), r = random_values(count, 5),
                       a = random_values(size.channels, 6), b = random_values(size.channels, 7),
                       m = random_values(size.channels, 8);
          Values expected(x.size()), magnitude(x.size());
          for (std::size_t i = 0; i < x.size(); ++i) {
            const std::size_t c = i % a.size();
            expected[i] = (x[i] - m[c]) * a[c] + b[c] + (add ? r[i] : 0.0);
            if (relu) expected[i] = std::max(expected[i], 0.0);
            magnitude[i] = std::abs((x[i] - m[c]) * a[c]) + std::abs(b[c]) + std::abs(r[i]);
          }
          const Floats xs(x), rs(r), ms(m), as(a), bs(b);
          Floats y(count);
          level.norm.normalize(TestLane(), size.rows, size.channels, xs.data(), ms.data(), as.data(),
                               bs.data(), add ? rs.data() : nullptr, relu, y.data());
          expect_close(y.values(), expected, magnitude, 4 * kRounding, 0.0, describe(level, size));
          // In place, over x and over the residual.
          const Floats over_x = xs.copy(), over_r = rs.copy();
          level.norm.normalize(TestLane(), size.rows, size.channels, over_x.data(), ms.data(), as.data(),
                               bs.data(), add ? rs.data() : nullptr, relu, over_x.data());
          EXPECT_TRUE(same_bits(y, over_x)) << describe(level, size);
          if (!add) continue;
          level.norm.normalize(TestLane(), size.rows, size.channels, xs.data(), ms.data(), as.data(),
                               bs.data(), over_r.data(), relu, over_r.data());
          EXPECT_TRUE(same_bits(y, over_r)) << describe(level, size);
        }
}

TEST(Norm, NormalizeWithoutMeanAndScaleAddsTheShift) {
  for (const Level& level : levels())
    for (Size size : kSizes) {
      const Values x = random_values(size.rows * size.channels, 4), b = random_values(size.channels, 7);
      const Floats xs(x), bs(b);
      Floats y(static_cast<std::int64_t>(x.size()));
      level.norm.normalize(TestLane(), size.rows, size.channels, xs.data(), nullptr, nullptr, bs.data(),
                           nullptr, false, y.data());
      for (std::size_t i = 0; i < x.size(); ++i)
        ASSERT_EQ(y[i], xs[i] + bs[i % b.size()]) << describe(level, size);
    }
}

TEST(Norm, NormalizeSubtractsTheMeanFirst) {
  for (const Level& level : levels())
    for (std::int64_t channels : {3, 16, 100}) {
      const Values mean = random_values(channels, 8, 9999.0, 10001.0), scale = random_values(channels, 6),
                   shift = random_values(channels, 7);
      Values x;
      for (int row = 0; row < 40; ++row)  // the differences are exact in float32
        for (const double m : mean) x.push_back(m + row / 1024.0);
      const Floats xs(x), means(mean), scales(scale), shifts(shift), y(xs.copy());
      level.norm.normalize(TestLane(), 40, channels, xs.data(), means.data(), scales.data(), shifts.data(),
                           nullptr, false, y.data());
      for (std::size_t i = 0; i < x.size(); ++i) {
        const std::size_t c = i % mean.size();
        const float product = static_cast<float>(i / mean.size()) / 1024.0F * scales[c];
        ASSERT_EQ(y[i], product + shifts[c]) << level.name << " " << i;
      }
    }
}

TEST(Norm, NanPassesThroughReluInNormalize) {
  for (const Level& level : levels())
    for (std::int64_t channels : {3, 16, 100}) {
      const Floats x(random_values(40 * channels, 8)), ones(Values(static_cast<std::size_t>(channels), 1.0));
      const std::size_t at = static_cast<std::size_t>(17 * channels + 2);
      x[at] = std::nanf("");
      level.norm.normalize(TestLane(), 40, channels, x.data(), ones.data(), ones.data(), ones.data(), nullptr,
                           true, x.data());
      for (std::size_t i = 0; i < x.size(); ++i)
        EXPECT_EQ(std::isnan(x[i]), i == at) << level.name << " " << i;
    }
}

/// A batch norm's forward and backward pass on one microshard, as in the layer, with every option of
/// Gradient.
struct Case {
  bool second, write, relu, mask_from_x;
};

void check_backward(const Level& level, Size size, Case option) {
  const std::string what = describe(level, size) + (option.second ? " dy2" : "") +
                           (option.write ? " g_out" : "") + (option.relu ? " relu" : "") +
                           (option.mask_from_x ? " from x" : "");
  constexpr double kEpsilon = 1e-3;
  const std::int64_t count = size.rows * size.channels;
  const std::size_t width = static_cast<std::size_t>(size.channels);
  const Values x = random_values(count, 11, -1.0, 2.0), dy = random_values(count, 12),
               dy2 = random_values(count, 13);
  const Values gamma = random_values(size.channels, 14, 0.5, 1.5), beta = random_values(size.channels, 15);
  const auto m = reference::moments(size.rows, size.channels, x);
  Values mean(width), inverse(width), scale(width), shift(width);
  const Values rest = random_values(size.channels, 16, -0.1, 0.1);
  for (std::size_t c = 0; c < width; ++c) {
    mean[c] = static_cast<float>(m.mean[c]);
    inverse[c] = static_cast<float>(
        1.0 / std::sqrt(m.m2[c] / static_cast<double>(std::max<std::int64_t>(size.rows, 1)) + kEpsilon));
    scale[c] = static_cast<float>(gamma[c] * inverse[c]);
    shift[c] = static_cast<float>(beta[c] - rest[c] * scale[c]);
  }
  const Floats xs(x), dys(dy), dy2s(dy2), means(mean), inverses(inverse), scales(scale), shifts(shift);
  Floats y(count), g(count), dx(count);
  level.norm.normalize(TestLane(), size.rows, size.channels, xs.data(), means.data(), scales.data(),
                       shifts.data(), nullptr, option.relu, y.data());
  Values expected_g(x.size());
  for (std::size_t i = 0; i < x.size(); ++i)
    expected_g[i] =
        option.relu && !(y[i] > 0.0F) ? 0.0 : static_cast<float>(dy[i] + (option.second ? dy2[i] : 0.0));

  NormKernels::Gradient gradient;
  gradient.dy = dys.data();
  gradient.dy2 = option.second ? dy2s.data() : nullptr;
  gradient.y = option.relu && !option.mask_from_x ? y.data() : nullptr;
  gradient.mask_from_x = option.mask_from_x;
  gradient.x = xs.data();
  gradient.scale = scales.data();
  gradient.shift = shifts.data();
  gradient.mean = means.data();
  gradient.mean_rest = rest.data();
  gradient.inverse_std = inverses.data();
  Values sum_g(width, -1.0), sum_gx(width, -1.0), magnitude_g(width, 0.0), magnitude_gx(width, 0.0);
  level.norm.backward_sums(TestLane(), size.rows, size.channels, gradient, option.write ? g.data() : nullptr,
                           sum_g.data(), sum_gx.data());
  Values expected_sum(width, 0.0), expected_gx(width, 0.0);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t c = i % width;
    const double normal = (x[i] - mean[c] - rest[c]) * inverse[c];
    expected_sum[c] += expected_g[i];
    expected_gx[c] += expected_g[i] * normal;
    magnitude_g[c] += std::abs(expected_g[i]);
    magnitude_gx[c] += std::abs(expected_g[i]) * (std::abs(normal) + std::abs(rest[c] * inverse[c]));
  }
  expect_close(sum_g, expected_sum, magnitude_g, kSumError, 0.0, "sum g " + what);
  expect_close(sum_gx, expected_gx, magnitude_gx, kSumError, 0.0, "sum gx " + what);
  if (option.write) expect_close(g.values(), expected_g, expected_g, 0.0, 0.0, "g " + what);

  // dx = a g + b (x - mean) + d with the coefficients of batch norm's gradient.
  Values a(width), b(width), d(width), expected_dx(x.size()), magnitude_dx(x.size());
  for (std::size_t c = 0; c < width; ++c) {
    const double rows = static_cast<double>(std::max<std::int64_t>(size.rows, 1));
    a[c] = scale[c];
    b[c] = static_cast<float>(-scale[c] * inverse[c] * sum_gx[c] / rows);
    d[c] = static_cast<float>(-scale[c] * sum_g[c] / rows);
  }
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t c = i % width;
    expected_dx[i] = a[c] * expected_g[i] + b[c] * (x[i] - mean[c]) + d[c];
    magnitude_dx[i] = std::abs(a[c] * expected_g[i]) + std::abs(b[c] * (x[i] - mean[c])) + std::abs(d[c]);
  }
  const Floats as(a), bs(b), ds(d);
  level.norm.backward_apply(TestLane(), size.rows, size.channels, gradient, as.data(), bs.data(), ds.data(),
                            dx.data());
  expect_close(dx.values(), expected_dx, magnitude_dx, 4 * kRounding, 0.0, "dx " + what);
  if (option.write) {  // from the written g, in place
    NormKernels::Gradient written;
    written.dy = g.data();
    written.x = xs.data();
    written.mean = means.data();
    level.norm.backward_apply(TestLane(), size.rows, size.channels, written, as.data(), bs.data(), ds.data(),
                              g.data());
    EXPECT_TRUE(same_bits(dx, g)) << what;
  }
}

TEST(Norm, BackwardWithEveryOption) {
  for (const Level& level : levels())
    for (Size size : kSizes)
      for (bool second : {false, true})
        for (bool write : {false, true}) {
          check_backward(level, size, {second, write, false, false});
          check_backward(level, size, {second, write, true, false});
          check_backward(level, size, {second, write, true, true});
        }
}

TEST(Norm, ReferenceBackwardMatchesCentralDifferences) {
  // Checks the reference that the layers' gradient checks use.
  const std::int64_t rows = 6, channels = 3;
  Values x = random_values(rows * channels, 21);
  const Values gamma = random_values(channels, 22, 0.5, 1.5), beta = random_values(channels, 23),
               dy = random_values(rows * channels, 24);
  const auto loss = [&] {
    const Values y = reference::batch_norm(rows, channels, x, gamma, beta, 1e-3);
    double sum = 0.0;
    for (std::size_t i = 0; i < y.size(); ++i) sum += y[i] * dy[i];
    return sum;
  };
  const Values dx = reference::batch_norm_backward(rows, channels, x, gamma, dy, 1e-3).dx;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double saved = x[i], h = 1e-5;
    x[i] = saved + h;
    const double up = loss();
    x[i] = saved - h;
    const double down = loss();
    x[i] = saved;
    EXPECT_NEAR(dx[i], (up - down) / (2 * h), 1e-7);
  }
}

TEST(Norm, SameBitsAtEveryLevelAddressAndRun) {
  for (Size size : kSizes) {
    const std::int64_t count = size.rows * size.channels;
    const std::size_t width = static_cast<std::size_t>(size.channels);
    const Values x = random_values(count, 31), dy = random_values(count, 32),
                 per = random_values(size.channels, 33);
    Values mean0, m20, g0, gx0;
    Floats dx0(count), y0(count);
    bool first = true;
    for (const Level& level : levels())
      for (int shift : {0, 0, 1, 7, 16}) {
        const Floats xs(x, shift), dys(dy, shift), p(per, shift);
        Floats y(count, shift), dx(count, shift);
        Values mean(width), m2(width), g(width), gx(width);
        moments_of(level, size.rows, size.channels, xs.data(), mean, m2);
        level.norm.normalize(TestLane(), size.rows, size.channels, xs.data(), p.data(), p.data(), p.data(),
                             dys.data(), true, y.data());
        NormKernels::Gradient gradient;
        gradient.dy = dys.data();
        gradient.y = y.data();
        gradient.x = xs.data();
        gradient.mean = gradient.inverse_std = p.data();
        level.norm.backward_sums(TestLane(), size.rows, size.channels, gradient, nullptr, g.data(),
                                 gx.data());
        level.norm.backward_apply(TestLane(), size.rows, size.channels, gradient, p.data(), p.data(),
                                  p.data(), dx.data());
        if (first) {
          mean0 = mean, m20 = m2, g0 = g, gx0 = gx;
          std::memcpy(dx0.data(), dx.data(), dx.size() * sizeof(float));
          std::memcpy(y0.data(), y.data(), y.size() * sizeof(float));
          first = false;
        }
        const std::string what = describe(level, size) + " shift " + std::to_string(shift);
        EXPECT_EQ(mean, mean0) << what;
        EXPECT_EQ(m2, m20) << what;
        EXPECT_EQ(g, g0) << what;
        EXPECT_EQ(gx, gx0) << what;
        EXPECT_TRUE(same_bits(dx, dx0)) << what;
        EXPECT_TRUE(same_bits(y, y0)) << what;
      }
  }
}

}  // namespace
}  // namespace lockstep
