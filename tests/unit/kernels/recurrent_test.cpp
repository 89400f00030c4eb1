// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/recurrent.h"

#include <limits>

#include "kernels/gate_math.h"
#include "unit/kernels/kernel_testing.h"

namespace lockstep {
namespace {

/// The distance to `exact` in units in the last place of its float32.
double ulps(float value, double exact) {
  const float nearest = std::abs(static_cast<float>(exact));
  const float next = std::nextafter(nearest, std::numeric_limits<float>::infinity());
  return std::abs(static_cast<double>(value) - exact) / static_cast<double>(next - nearest);
}

/// A quarter of a million numbers of every size and both signs.
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

TEST(GateMath, SigmoidIsExactToThreeUnitsInTheLastPlace) {
  for (const float x : numbers()) {
    if (x < -87) continue;  // denormal from there on
    const double exact = 1 / (1 + std::exp(-static_cast<double>(x)));
    ASSERT_LE(ulps(fast_sigmoid(x), exact), 3.0) << x;
  }
  EXPECT_EQ(fast_sigmoid(200.0F), 1.0F);
  EXPECT_LE(fast_sigmoid(-200.0F), 2e-38F);
}

TEST(GateMath, TanhIsExactToThreeUnitsInTheLastPlace) {
  for (const float x : numbers()) ASSERT_LE(ulps(fast_tanh(x), std::tanh(static_cast<double>(x))), 3.0) << x;
  EXPECT_EQ(fast_tanh(std::numeric_limits<float>::infinity()), 1.0F);
  EXPECT_EQ(fast_tanh(-std::numeric_limits<float>::infinity()), -1.0F);
}

TEST(GateMath, NanStaysNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(fast_sigmoid(nan)));
  EXPECT_TRUE(std::isnan(fast_tanh(nan)));
}

constexpr std::int64_t kRows = 4, kStep = 2;
const Values kLengths{3, 2, 0, 9};  ///< rows 0 and 3 take part in step 2

/// What one step of each cell writes, all of it one behind the other.
struct Written {
  std::vector<Floats> all;
  Floats& add(std::int64_t count, std::uint32_t stream, double low = -3, double high = 3) {
    all.emplace_back(random_values(count, stream, low, high));
    return all.back();
  }
};

Written lstm_step(const RecurrentKernels& kernels, std::int64_t units, const float* lengths, bool first) {
  const std::int64_t count = kRows * units, wide = 3 * units;
  Written w;
  w.all.reserve(9);
  Floats &gates = w.add(4 * count, 1), &c = w.add(count, 2), &h = w.add(count, 3),
         &y = w.add(kRows * wide, 4), &dh = w.add(count, 5), &dc = w.add(count, 6);
  const Floats recurrent(random_values(4 * count, 7)), c_before(random_values(count, 8)),
      h_before(random_values(count, 9)), dy(random_values(kRows * wide, 10)),
      product(random_values(count, 11));
  const RecurrentStep step{kRows, units, kStep, lengths};
  const TestLane lane;
  kernels.lstm_forward(lane, step, gates.data(), first ? nullptr : recurrent.data(), 1.0F,
                       first ? nullptr : c_before.data(), first ? nullptr : h_before.data(), c.data(),
                       h.data(), {y.data() + units, wide});
  w.all.push_back(gates.copy());
  kernels.lstm_backward(lane, step, gates.data(), first ? nullptr : c_before.data(), c.data(),
                        first ? nullptr : product.data(), dh.data(), dc.data(), {dy.data() + units, wide});
  return w;
}

Written gru_step(const RecurrentKernels& kernels, std::int64_t units, const float* lengths, bool first,
                 bool reset_after) {
  const std::int64_t count = kRows * units;
  Written w;
  w.all.reserve(9);
  Floats &gates = w.add(2 * count, 1), &candidate = w.add(count, 2), &h = w.add(count, 3),
         &y = w.add(count, 4), &dh = w.add(count, 5), &reset = w.add(count, 6), &through = w.add(count, 7);
  const Floats recurrent(random_values(2 * count, 8)), of_h(random_values(count, 9)),
      h_before(random_values(count, 10)), dy(random_values(count, 11)), product(random_values(count, 12));
  const RecurrentStep step{kRows, units, kStep, lengths};
  const TestLane lane;
  const float* before = first ? nullptr : h_before.data();
  kernels.gru_gates(lane, step, gates.data(), first ? nullptr : recurrent.data(), before,
                    reset_after ? nullptr : reset.data());
  kernels.gru_output(lane, step, gates.data(), candidate.data(),
                     reset_after ? reset.data() : (first ? nullptr : of_h.data()), reset_after, before,
                     h.data(), {y.data(), units});
  w.all.push_back(gates.copy());
  kernels.gru_output_backward(lane, step, gates.data(), candidate.data(),
                              reset_after ? reset.data() : nullptr, before, first ? nullptr : product.data(),
                              dh.data(), {dy.data(), units});
  if (!reset_after)
    kernels.gru_gates_backward(lane, step, gates.data(), before, first ? nullptr : of_h.data(),
                               through.data());
  return w;
}

TEST(Recurrent, EveryLevelGivesTheSameBits) {
  const Floats lengths(kLengths);
  for (const std::int64_t units : {1, 3, 16, 17, 40})
    for (const bool first : {false, true})
      for (const float* of : {static_cast<const float*>(nullptr), static_cast<const float*>(lengths.data())})
        for (const int cell : {0, 1, 2}) {
          const auto run = [&](const Level& level) {
            return cell == 0 ? lstm_step(level.recurrent, units, of, first)
                             : gru_step(level.recurrent, units, of, first, cell == 2);
          };
          const Written expected = run(levels().front());
          for (const Level& level : levels()) {
            const Written written = run(level);
            for (std::size_t i = 0; i < written.all.size(); ++i)
              EXPECT_TRUE(same_bits(written.all[i], expected.all[i]))
                  << level.name << ", cell " << cell << ", " << units << " units, matrix " << i;
          }
        }
}

TEST(Recurrent, RowsPastTheirEndKeepTheirStateAndGiveZeros) {
  constexpr std::int64_t kUnits = 5;
  const Floats lengths(kLengths);
  const Values c_before = random_values(kRows * kUnits, 8), h_before = random_values(kRows * kUnits, 9);
  for (const Level& level : levels()) {
    const Written w = lstm_step(level.recurrent, kUnits, lengths.data(), false);
    const Floats &dgates = w.all[0], &c = w.all[1], &h = w.all[2], &y = w.all[3];
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
