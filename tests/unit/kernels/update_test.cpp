// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/update.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "unit/kernels/kernel_testing.h"
#include "unit/kernels/rows_testing.h"
#include "unit/kernels/rules_testing.h"

namespace lockstep {
namespace {

TEST(Update, EveryRuleIsTested) {
  std::vector<bool> found(Rules::kCount);
  for (const TestedRule& rule : tested_rules()) found[static_cast<std::size_t>(rule.step.rule)] = true;
  // The two passes of LAMB: tests/unit/optim/trust_rule_test.cpp.
  found[Rules::number_of<LambDirection>()] = found[Rules::number_of<LambMove>()] = true;
  for (int rule = 0; rule < Rules::kCount; ++rule)
    EXPECT_TRUE(found[static_cast<std::size_t>(rule)]) << "rule " << rule << " of kernels/rules.h";
}

TEST(Update, FollowsTheReferenceVectors) {
  struct Expected {
    const char* name;
    double w[3];  ///< from w = 1 with gradients 0.1, 0.2, -0.3
  };
  constexpr Expected kExpected[] = {{"gradient descent", {0.99, 0.97, 1.0}},
                                    {"momentum", {0.99, 0.961, 0.9649}},
                                    {"nesterov", {0.981, 0.9349, 0.96841}},
                                    {"adam", {0.900000316, 0.80348225, 0.810142146}}};
  constexpr float kGradients[] = {0.1F, 0.2F, -0.3F};
  const std::vector<TestedRule> rules = tested_rules();
  for (const Level& level : levels())
    for (const auto& [name, expected] : kExpected) {
      constexpr std::size_t kCount = 37;  // whole vectors and a remainder
      Floats w(Values(kCount, 1.0)), g(kCount), a(kCount), b(kCount);
      for (int t = 1; t <= 3; ++t) {
        for (std::size_t i = 0; i < kCount; ++i) g[i] = kGradients[t - 1];
        TestedRule rule = *std::ranges::find(rules, name, &TestedRule::name);
        const double alpha = 0.1 * std::sqrt(1 - std::pow(0.999, t)) / (1 - std::pow(0.9, t));
        if (rule.name == "adam")
          rule.step = rule_step(Adam<false>{static_cast<float>(alpha), 1.0F - 0.9F, 1.0F - 0.999F, 1e-8F});
        rule.dense(level.update, TestLane(), kCount, w.data(), g.data(), a.data(), b.data(), nullptr);
        // Each step rounds a few numbers near 1. Adam divides by a root whose argument (1 - beta2) has an
        // error of 2^-10.
        const double tolerance = rule.name == "adam" ? 2e-6 : 3.0 * t * 2 * kRounding;
        for (std::size_t i = 0; i < kCount; ++i)
          EXPECT_NEAR(w[i], expected[t - 1], tolerance) << level.name << " " << rule.name << " step " << t;
      }
    }
}

TEST(Update, AnySplitReturnsTheSameBits) {
  constexpr std::int64_t kCount = 100;
  for (const TestedRule& rule : tested_rules()) {
    std::vector<Floats> whole;  // w and the slots
    for (const Level& level : levels())
      for (std::int64_t cut = 0; cut <= 48; ++cut) {
        const Floats g(random_values(kCount, 2));
        std::vector<Floats> all;
        all.emplace_back(random_values(kCount, 1));
        for (std::uint32_t s = 3; s < 6; ++s) all.emplace_back(random_values(kCount, s, 0.0, 1.0));
        for (const auto& [first, count] : {std::pair{std::int64_t{0}, cut}, std::pair{cut, kCount - cut}})
          rule.dense(level.update, TestLane(), count, all[0].data() + first, g.data() + first,
                     all[1].data() + first, all[2].data() + first, all[3].data() + first);
        if (whole.empty()) {
          EXPECT_FALSE(same_bits(all[0], Floats(random_values(kCount, 1)))) << rule.name;
          for (std::size_t i = 0; i < kCount; ++i) EXPECT_TRUE(std::isfinite(all[0][i])) << rule.name;
          whole = std::move(all);
          continue;
        }
        for (std::size_t i = 0; i < all.size(); ++i)
          EXPECT_TRUE(same_bits(all[i], whole[i]))
              << level.name << " " << rule.name << ", array " << i << ", cut at " << cut;
      }
  }
}

TEST(Update, LeavesAdjacentElementsUnchanged) {
  for (const Level& level : levels())
    for (const TestedRule& rule : tested_rules()) {
      Floats w(Values(40, 1.0)), g(Values(40, 0.5)), a(Values(40, 1.0)), b(Values(40, 1.0)),
          c(Values(40, 1.0));
      rule.dense(level.update, TestLane(), 21, w.data() + 3, g.data() + 3, a.data() + 3, b.data() + 3,
                 c.data() + 3);
      for (std::size_t i = 0; i < 40; ++i) EXPECT_EQ(w[i] != 1.0F, i >= 3 && i < 24) << rule.name << " " << i;
    }
}

/// Neither limits nor selections hide a NaN; infinity does not become an ordinary number in a slot.
TEST(Update, NaNInAGradientReachesTheVariable) {
  for (const Level& level : levels())
    for (const TestedRule& rule : tested_rules()) {
      Floats w(Values(40, 1.0)), g(Values(40, 1.0)), a(Values(40, 1.0)), b(Values(40, 1.0)),
          c(Values(40, 1.0));
      g[17] = std::nanf("");
      rule.dense(level.update, TestLane(), 40, w.data(), g.data(), a.data(), b.data(), c.data());
      for (std::size_t i = 0; i < 40; ++i)
        EXPECT_EQ(std::isnan(w[i]), i == 17) << level.name << " " << rule.name << " " << i;
    }
}

/// FTRL's power against the library's, in double.
TEST(Update, PowerIsExactToTwelveDigits) {
  for (const double exponent : {0.0, 0.1, 0.37, 0.5, 1.0, 2.5})
    for (float x = 1e-30F; x < 1e30F; x *= 1.37F) {
      const double expected = std::pow(static_cast<double>(x), exponent);
      EXPECT_NEAR(power_of(x, exponent) / expected, 1, 1e-12) << x << " " << exponent;
    }
  EXPECT_EQ(power_of(0.0F, 0.5), 0);
  EXPECT_EQ(power_of(0.0F, 0.0), 1);
  EXPECT_TRUE(std::isinf(power_of(INFINITY, 0.5)));
  EXPECT_TRUE(std::isnan(power_of(std::nanf(""), 0.5)));
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

TEST(Update, LookFindsWhatIsAboveALimitOrNotFinite) {
  const float infinity = std::numeric_limits<float>::infinity(),
              nan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kMost = 0x1.fffffep62F;
  for (const Level& level : levels())
    for (std::int64_t count : {1, 5, 16, 67}) {
      const Values values = random_values(count, 1);
      for (std::size_t at = 0; at < values.size(); ++at)
        for (const float value : {kMost, -kMost, 0x1p63F, -0x1p63F, infinity, -infinity, nan, -nan})
          for (const float most : {kMost, std::numeric_limits<float>::max(), infinity}) {
            const Floats looked(values);
            looked[at] = value;
            NumbersFound found;
            level.update.look(TestLane(), count, looked.data(), most, &found);
            const bool above = std::isnan(value) || std::abs(value) > most;
            EXPECT_EQ(found.large, above ? 1 : 0) << level.name << " " << value << " " << most << " " << at;
            EXPECT_EQ(found.not_finite, above && !std::isfinite(value) ? 1 : 0)
                << level.name << " " << value << " " << most << " " << at;
            NumbersFound kept{.large = 1, .not_finite = 1};  // of another range
            level.update.look(TestLane(), 0, looked.data(), most, &kept);
            EXPECT_EQ(kept.large + kept.not_finite, 2);
          }
    }
}

/// In two parts, as with two threads.
TEST(Update, SparseUpdatesMatchDenseOnesOrKeepOtherRows) {
  for (const Level& level : levels())
    for (const TestedRule& rule : tested_rules())
      for (const RowCase& test : row_cases(rule.name == "adam" || rule.name == "gradient descent"))
        for (const bool others : {true, false}) {
          const std::string what = level.name + " " + rule.name + " " + test.text();
          const std::int64_t size = test.rows * test.width;
          const Values values = random_values(static_cast<std::int64_t>(test.touched.size()) * test.width, 5);
          std::vector<Floats> before, all, dense;  // w and the slots
          for (std::uint32_t s = 1; s < 5; ++s)
            for (std::vector<Floats>* of : {&before, &all, &dense})
              of->emplace_back(random_values(size, s, s == 1 ? -1.0 : 0.0, 1.0));
          const Floats given(values), gradient(dense_gradient(test, values));
          rule.dense(level.update, TestLane(), size, dense[0].data(), gradient.data(), dense[1].data(),
                     dense[2].data(), dense[3].data());
          for (const bool second : {false, true}) {
            const std::int64_t cut = test.rows / 3;
            const auto number = static_cast<std::int32_t>(test.touched.size());
            rule.rows(level.update, TestLane(),
                      {second ? cut : 0, second ? test.rows : cut, test.width, &number, number,
                       test.touched.data(), given.data(), others},
                      all[0].data(), all[1].data(), all[2].data(), all[3].data());
          }
          for (std::int64_t i = 0; i < size; ++i) {
            const auto at = static_cast<std::size_t>(i);
            const bool touched = std::ranges::find(test.touched, static_cast<std::int32_t>(i / test.width)) !=
                                 test.touched.end();
            const bool stays = !touched && !others;
            for (std::size_t k = 0; k < all.size(); ++k)
              ASSERT_EQ(all[k][at], stays ? before[k][at] : dense[k][at])
                  << what << " " << i << " array " << k;
            if (rule.moves_others && !touched) {
              const std::size_t moved = rule.num_slots > 0 ? 1 : 0;
              bool same = true;
              for (std::size_t k = 0; k <= moved; ++k) same = same && all[k][at] == before[k][at];
              ASSERT_EQ(same, !others) << what;
            }
          }
        }
}

}  // namespace
}  // namespace lockstep
