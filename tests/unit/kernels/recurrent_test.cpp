// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/recurrent.h"

#include <limits>

#include "kernels/gate_math.h"
#include "unit/kernels/recurrent_steps.h"

namespace lockstep {
namespace {

/// The distance to `exact` in units in the last place of the float32 value.
double ulps(float value, double exact) {
  const float nearest = std::abs(static_cast<float>(exact));
  const float next = std::nextafter(nearest, std::numeric_limits<float>::infinity());
  return std::abs(static_cast<double>(value) - exact) / static_cast<double>(next - nearest);
}

/// A quarter of a million numbers of all magnitudes and both signs.
std::vector<float> numbers() {
  std::vector<float> all;
  for (std::uint32_t bits = 0; bits < 0x7F800000U; bits += 16411)
    for (const std::uint32_t sign : {0U, 0x80000000U}) {
      const std::uint32_t word = bits | sign;
      float x = 0;
      std::memcpy(&x, &word, sizeof x);
      all.push_back(x);
    }
  return all;
}

TEST(GateMath, SigmoidIsWithinThreeUnitsInTheLastPlace) {
  for (const float x : numbers()) {
    if (x < -87) continue;  // denormal below
    const double exact = 1 / (1 + std::exp(-static_cast<double>(x)));
    ASSERT_LE(ulps(fast_sigmoid(x), exact), 3.0) << x;
  }
  EXPECT_EQ(fast_sigmoid(200.0F), 1.0F);
  EXPECT_LE(fast_sigmoid(-200.0F), 2e-38F);
}

TEST(GateMath, TanhIsWithinThreeUnitsInTheLastPlace) {
  for (const float x : numbers()) ASSERT_LE(ulps(fast_tanh(x), std::tanh(static_cast<double>(x))), 3.0) << x;
  EXPECT_EQ(fast_tanh(std::numeric_limits<float>::infinity()), 1.0F);
  EXPECT_EQ(fast_tanh(-std::numeric_limits<float>::infinity()), -1.0F);
}

TEST(GateMath, NanStaysNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(fast_sigmoid(nan)));
  EXPECT_TRUE(std::isnan(fast_tanh(nan)));
}

const auto kRead = [](const auto& memory) {
  const Floats wide = memory.widened();
  return std::vector<float>(wide.data(), wide.data() + wide.size());
};

TEST(Recurrent, BitsAreEqualAtEveryLevel) {
  for (const DType type : {DType::f32, DType::bf16, DType::f16})
    for (const CellCase& test : cell_cases()) {
      const Matrices expected =
          cell_step_in<Stored>(type, levels().front().recurrent, TestLane(), test, kRead);
      for (const Level& level : levels()) {
        const Matrices written = cell_step_in<Stored>(type, level.recurrent, TestLane(), test, kRead);
        for (std::size_t i = 0; i < written.size(); ++i)
          EXPECT_EQ(written[i], expected[i])
              << level.name << ", " << name_of(type) << ", " << describe(test) << ", matrix " << i;
      }
    }
}

/// Each matrix equals float32's on numbers that T can represent, either exactly or rounded once.
template <typename T>
void expect_rounded_cells(const CellCase& test) {
  const RecurrentKernels& kernels = levels().front().recurrent;
  Matrices exact = cell_step<float, T, Stored>(kernels, TestLane(), test, kRead);
  const Matrices half = cell_step<T, T, Stored>(kernels, TestLane(), test, kRead);
  ASSERT_EQ(half.size(), exact.size());
  int rounded = 0;
  for (std::size_t i = 0; i < half.size(); ++i) {
    if (half[i] == exact[i]) continue;
    ++rounded;
    for (float& value : exact[i]) value = to_float(from_float<T>(value));
    EXPECT_EQ(half[i], exact[i]) << describe(test) << ", matrix " << i;
  }
  EXPECT_GE(rounded, 3) << "nothing was rounded";
  EXPECT_LE(rounded, 5) << "states were rounded";
}
TEST(Recurrent, In16BitsIsFloat32RoundedWhenStored) {
  for (const CellCase& test : cell_cases()) {
    if (test.units < 16) continue;  // a single number may need no rounding
    expect_rounded_cells<BFloat16>(test);
    expect_rounded_cells<Float16>(test);
  }
}

TEST(Recurrent, InactiveRowsKeepTheirStateAndReturnZeros) {
  constexpr std::int64_t kUnits = 5;
  const Values c_before = random_values(kCellRows * kUnits, 8, -3, 3),
               h_before = random_values(kCellRows * kUnits, 9, -3, 3);
  for (const Level& level : levels()) {
    const Matrices all = cell_step_in<Stored>(DType::f32, level.recurrent, TestLane(),
                                              {CellKind::lstm, kUnits, true, false}, kRead);
    const std::vector<float>&c = all[0], &h = all[1], &y = all[2], &dgates = all[3];
    for (std::size_t row : {1U, 2U})
      for (std::size_t k = 0; k < kUnits; ++k) {
        EXPECT_EQ(c[row * kUnits + k], static_cast<float>(c_before[row * kUnits + k]));
        EXPECT_EQ(h[row * kUnits + k], static_cast<float>(h_before[row * kUnits + k]));
        EXPECT_EQ(y[row * 3 * kUnits + kUnits + k], 0.0F);
        for (std::size_t gate = 0; gate < 4; ++gate) EXPECT_EQ(dgates[(row * 4 + gate) * kUnits + k], 0.0F);
      }
    for (std::size_t k = 0; k < kUnits; ++k) EXPECT_EQ(y[3 * 3 * kUnits + kUnits + k], h[3 * kUnits + k]);
  }
}

}  // namespace
}  // namespace lockstep
