// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/update.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "unit/kernels/kernel_testing.h"
#include "unit/kernels/rows_testing.h"

namespace lockstep {
namespace {

/// A rule applied to [first, first + count) of w with gradient g and two slots; t starts at 1.
struct Rule {
  const char* name;
  std::function<void(const UpdateKernels&, std::int64_t count, float* w, const float* g, float* a, float* b,
                     int t)>
      apply;
  double w[3];  ///< expected w, from w = 1 with gradients 0.1, 0.2, -0.3
};

std::vector<Rule> rules() {
  const Lane lane;
  return {
      {"sgd",
       [=](const UpdateKernels& k, std::int64_t n, float* w, const float* g, float*, float*, int) {
         k.gradient_descent(lane, n, w, g, 0.1F);
       },
       {0.99, 0.97, 1.0}},
      {"momentum",
       [=](const UpdateKernels& k, std::int64_t n, float* w, const float* g, float* a, float*, int) {
         k.momentum(lane, n, w, g, a, 0.1F, 0.9F, false);
       },
       {0.99, 0.961, 0.9649}},
      {"nesterov",
       [=](const UpdateKernels& k, std::int64_t n, float* w, const float* g, float* a, float*, int) {
         k.momentum(lane, n, w, g, a, 0.1F, 0.9F, true);
       },
       {0.981, 0.9349, 0.96841}},
      {"adam",
       [=](const UpdateKernels& k, std::int64_t n, float* w, const float* g, float* m, float* v, int t) {
         const double alpha = 0.1 * std::sqrt(1 - std::pow(0.999, t)) / (1 - std::pow(0.9, t));
         k.adam(lane, n, w, g, m, v, static_cast<float>(alpha), 0.9F, 0.999F, 1e-8F);
       },
       {0.900000316, 0.80348225, 0.810142146}},
  };
}

TEST(Update, FollowsTheReferenceVectors) {
  constexpr float kGradients[] = {0.1F, 0.2F, -0.3F};
  for (const Level& level : levels())
    for (const Rule& rule : rules()) {
      constexpr std::size_t kCount = 37;  // whole vectors and a remainder
      Floats w(Values(kCount, 1.0)), g(kCount), a(kCount), b(kCount);
      for (int t = 1; t <= 3; ++t) {
        for (std::size_t i = 0; i < kCount; ++i) g[i] = kGradients[t - 1];
        rule.apply(level.update, kCount, w.data(), g.data(), a.data(), b.data(), t);
        // Each step rounds a few numbers near 1. Adam divides by a root whose argument (1 - beta2) has an
        // error of 2^-10.
        const double tolerance = rule.name == std::string("adam") ? 2e-6 : 3.0 * t * 2 * kRounding;
        for (std::size_t i = 0; i < kCount; ++i)
          EXPECT_NEAR(w[i], rule.w[t - 1], tolerance) << level.name << " " << rule.name << " step " << t;
      }
    }
}

TEST(Update, AnySplitReturnsTheSameBits) {
  constexpr std::int64_t kCount = 100;
  for (const Rule& rule : rules()) {
    Floats whole_w(kCount), whole_a(kCount), whole_b(kCount);
    bool first = true;
    for (const Level& level : levels())
      for (std::int64_t cut = 0; cut <= 48; ++cut) {
        Floats w(random_values(kCount, 1)), g(random_values(kCount, 2)), a(random_values(kCount, 3)),
            b(random_values(kCount, 4, 0.0, 1.0));
        rule.apply(level.update, cut, w.data(), g.data(), a.data(), b.data(), 2);
        rule.apply(level.update, kCount - cut, w.data() + cut, g.data() + cut, a.data() + cut, b.data() + cut,
                   2);
        if (first) {
          std::memcpy(whole_w.data(), w.data(), kCount * sizeof(float));
          std::memcpy(whole_a.data(), a.data(), kCount * sizeof(float));
          std::memcpy(whole_b.data(), b.data(), kCount * sizeof(float));
          EXPECT_FALSE(same_bits(w, Floats(random_values(kCount, 1))));
          first = false;
        }
        EXPECT_TRUE(same_bits(w, whole_w)) << level.name << " " << rule.name << " cut at " << cut;
        EXPECT_TRUE(same_bits(a, whole_a)) << level.name << " " << rule.name << " cut at " << cut;
        EXPECT_TRUE(same_bits(b, whole_b)) << level.name << " " << rule.name << " cut at " << cut;
      }
  }
}

TEST(Update, LeavesAdjacentElementsUnchanged) {
  for (const Level& level : levels())
    for (const Rule& rule : rules()) {
      Floats w(Values(40, 1.0)), g(Values(40, 1.0)), a(Values(40, 1.0)), b(Values(40, 1.0));
      rule.apply(level.update, 21, w.data() + 3, g.data() + 3, a.data() + 3, b.data() + 3, 1);
      for (std::size_t i = 0; i < 40; ++i) EXPECT_EQ(w[i] != 1.0F, i >= 3 && i < 24) << rule.name << " " << i;
    }
}

TEST(Update, UnscaleMultipliesAndDetectsNonFiniteResults) {
  const float infinity = std::numeric_limits<float>::infinity(),
              nan = std::numeric_limits<float>::quiet_NaN();
  for (const Level& level : levels())
    for (std::int64_t count : {0, 1, 5, 16, 67}) {
      const Values values = random_values(count, 1);
      const Floats g(values);
      std::int32_t flag = 0;
      level.update.unscale(TestLane(), count, 0x1p-16F, g.data(), &flag);
      EXPECT_EQ(flag, 0);
      for (std::size_t i = 0; i < g.size(); ++i) EXPECT_EQ(g[i], static_cast<float>(values[i]) * 0x1p-16F);
      for (std::size_t at = 0; at < g.size(); ++at)
        for (const float broken : {infinity, -infinity, nan}) {
          const Floats copy(values);
          copy[at] = broken;
          flag = 0;
          level.update.unscale(TestLane(), count, 0.5F, copy.data(), &flag);
          EXPECT_EQ(flag, 1) << level.name << " " << count << " " << at;
        }
      flag = 1;  // set by another range; it stays set
      level.update.unscale(TestLane(), count, 1.0F, g.data(), &flag);
      EXPECT_EQ(flag, 1);
    }
}

/// In two parts, as with two threads.
TEST(Update, SparseUpdatesMatchDenseOnesOrKeepOtherRows) {
  for (const Level& level : levels())
    for (const RowRule& rule : row_rules())
      for (const RowCase& test : row_cases())
        for (const bool others : {true, false}) {
          const std::string what = level.name + " " + rule.name + " " + test.text();
          const std::int64_t size = test.rows * test.width;
          const Values values = random_values(static_cast<std::int64_t>(test.touched.size()) * test.width, 5);
          const Values w0 = random_values(size, 1), a0 = random_values(size, 2),
                       b0 = random_values(size, 3, 0.0, 1.0);
          const Floats w(w0), a(a0), b(b0), dense_w(w0), dense_a(a0), dense_b(b0), given(values),
              dense(dense_gradient(test, values));
          rule.dense(level.update, TestLane(), size, dense_w.data(), dense.data(), dense_a.data(),
                     dense_b.data());
          for (const bool second : {false, true}) {
            const std::int64_t cut = test.rows / 3;
            rule.rows(
                level.update, TestLane(),
                {second ? cut : 0, second ? test.rows : cut, test.width,
                 static_cast<std::int64_t>(test.touched.size()), test.touched.data(), given.data(), others},
                w.data(), a.data(), b.data());
          }
          for (std::int64_t i = 0; i < size; ++i) {
            const auto at = static_cast<std::size_t>(i);
            const bool touched = std::ranges::find(test.touched, static_cast<std::int32_t>(i / test.width)) !=
                                 test.touched.end();
            const bool stays = !touched && !others;
            ASSERT_EQ(w[at], stays ? static_cast<float>(w0[at]) : dense_w[at]) << what << " " << i;
            ASSERT_EQ(a[at], stays ? static_cast<float>(a0[at]) : dense_a[at]) << what << " " << i;
            ASSERT_EQ(b[at], stays ? static_cast<float>(b0[at]) : dense_b[at]) << what << " " << i;
            if (rule.moves_others && !touched) {
              ASSERT_EQ(a[at] == static_cast<float>(a0[at]), !others) << what;
            }
          }
        }
}

}  // namespace
}  // namespace lockstep
