// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Element-wise kernels in the 16-bit types. Stored results are the float32 kernel's results on the widened
// numbers, rounded once; float32 results have the float32 kernel's bits.
#include <gtest/gtest.h>

#include "core/error.h"
#include "kernels/elementwise.h"
#include "unit/kernels/stored_testing.h"

namespace lockstep {
namespace {

template <typename T>
class ElementwiseHalf : public testing::Test {};
using Types = testing::Types<BFloat16, Float16>;
TYPED_TEST_SUITE(ElementwiseHalf, Types);

/// Random numbers with NaN, infinities and zeros of both signs.
Values special_values(std::int64_t count, std::uint32_t stream) {
  Values values = random_values(count, stream, -2.0, 2.0);
  const double special[] = {std::nan(""), INFINITY, -INFINITY, 0.0, -0.0};
  for (std::size_t i = 3; i < values.size(); i += 11) values[i] = special[i / 11 % 5];
  return values;
}

TYPED_TEST(ElementwiseHalf, MapsAreFloat32RoundedOnce) {
  using K = const ElementwiseKernels&;
  for (const Level& level : levels())
    for (std::int64_t count : {0, 1, 3, 15, 16, 17, 63, 64, 100, 1001})
      for (int shift : {0, 1}) {
        const Stored<TypeParam> a(special_values(count, 1), shift), b(special_values(count, 2), shift);
        const Floats wide_a = a.widened(), wide_b = b.widened(), bias(random_values(count, 3));
        const auto compare = [&](const char* name, const auto& run) {
          Stored<TypeParam> y(a.values(), shift);
          const Floats expected = y.widened();
          run(level.elementwise, ConstData(a.data()), ConstData(b.data()), Data(y.data()));
          run(level.elementwise, ConstData(wide_a.data()), ConstData(wide_b.data()), Data(expected.data()));
          expect_rounded(y, expected, fmt::format("{} {} {} shift {}", level.name, name, count, shift));
        };
        const TestLane lane;
        compare("add", [&](K k, ConstData x, ConstData z, Data y) { k.add(lane, count, x, z, y, false); });
        compare("add and relu",
                [&](K k, ConstData x, ConstData z, Data y) { k.add(lane, count, x, z, y, true); });
        compare("accumulate", [&](K k, ConstData, ConstData z, Data y) { k.accumulate(lane, count, y, z); });
        compare("scale", [&](K k, ConstData x, ConstData, Data y) { k.scale(lane, count, 0.3F, x, y); });
        compare("relu", [&](K k, ConstData x, ConstData, Data y) { k.relu(lane, count, x, y); });
        compare("relu backward",
                [&](K k, ConstData x, ConstData z, Data y) { k.relu_backward(lane, count, x, z, y); });
        compare("zero", [&](K k, ConstData, ConstData, Data y) { k.zero(lane, count, y); });
        for (const bool relu : {false, true})
          for (const std::int64_t channels : {count, std::int64_t{5}})
            compare("add bias", [&](K k, ConstData, ConstData, Data y) {
              k.add_bias(lane, channels == 0 ? 0 : count / channels, channels, bias.data(), y, relu);
            });
      }
}

struct Size {
  std::int64_t rows, channels;
};
const std::vector<Size> kSizes{{1, 1},   {5, 3},     {128, 10},  {4000, 16}, {65, 17},
                               {64, 64}, {300, 100}, {16, 1000}, {1000, 1},  {33, 192}};

TYPED_TEST(ElementwiseHalf, RowSumsHaveTheBitsOfFloat32) {
  for (const Level& level : levels())
    for (Size size : kSizes)
      for (int shift : {0, 1})
        for (bool masked : {false, true}) {
          const std::string what =
              fmt::format("{} {}x{} shift {}", level.name, size.rows, size.channels, shift);
          const std::int64_t count = size.rows * size.channels;
          const Stored<TypeParam> dy(random_values(count, 4), shift), y(random_values(count, 5), shift);
          const Floats wide_dy = dy.widened(), wide_y = y.widened();
          Stored<TypeParam> g(count, shift);
          Floats wide_g(count), sums(size.channels), wide_sums(size.channels), alone(size.channels);
          const auto run = [&](ConstData gradient, ConstData output, Data written, const Floats& result) {
            level.elementwise.mask_and_sum_rows(TestLane(), size.rows, size.channels, gradient,
                                                masked ? output : nullptr, written, result.data());
          };
          run(wide_dy.data(), wide_y.data(), wide_g.data(), wide_sums);
          run(dy.data(), y.data(), g.data(), sums);
          run(dy.data(), y.data(), nullptr, alone);
          EXPECT_TRUE(same_bits(sums, wide_sums)) << what;
          EXPECT_TRUE(same_bits(alone, wide_sums)) << what;
          expect_rounded(g, wide_g, what);
          run(dy.data(), y.data(), dy.data(), alone);  // in place
          EXPECT_TRUE(same_bits(alone, wide_sums)) << what;
          expect_rounded(dy, wide_g, "in place " + what);
        }
}

TYPED_TEST(ElementwiseHalf, GlobalAveragesAreFloat32RoundedOnce) {
  for (const Level& level : levels())
    for (Size size : kSizes) {
      const std::int64_t n = 3, count = n * size.rows * size.channels;
      const std::string what = fmt::format("{} {}x{}", level.name, size.rows, size.channels);
      const Stored<TypeParam> x(random_values(count, 6)), dy(random_values(n * size.channels, 7));
      const Floats wide_x = x.widened(), wide_dy = dy.widened();
      Stored<TypeParam> y(n * size.channels), dx(count);
      Floats wide_y(n * size.channels), wide_dx(count);
      const auto run = [&](ConstData from, Data to, ConstData gradient, Data back) {
        level.elementwise.global_average(TestLane(), n, size.rows, size.channels, from, to);
        level.elementwise.global_average_backward(TestLane(), n, size.rows, size.channels, gradient, back);
      };
      run(x.data(), y.data(), dy.data(), dx.data());
      run(wide_x.data(), wide_y.data(), wide_dy.data(), wide_dx.data());
      expect_rounded(y, wide_y, what);
      expect_rounded(dx, wide_dx, "gradient " + what);
    }
}

TYPED_TEST(ElementwiseHalf, DropoutAndNoiseAreThoseOfFloat32) {
  for (const Level& level : levels())
    for (std::int64_t features : {1, 4, 7, 64, 65, 300})
      for (int shift : {0, 1}) {
        const std::int64_t n = 5;
        const std::string what = fmt::format("{} {} features, shift {}", level.name, features, shift);
        const Stored<TypeParam> x(random_values(n * features, 8, 0.5, 1.0), shift);
        const Floats wide_x = x.widened();
        Stored<TypeParam> y(n * features, shift), noisy(n * features, shift);
        Floats wide_y(n * features), wide_noisy(n * features);
        const auto run = [&](ConstData from, Data dropped, Data added) {
          level.elementwise.dropout(TestLane(), n, features, from, 0.25F, 7, 1, 41, 1000, dropped);
          level.elementwise.gaussian_noise(TestLane(), n, features, from, 0.5F, 7, 1, 41, 1000, added);
        };
        run(x.data(), y.data(), noisy.data());
        run(wide_x.data(), wide_y.data(), wide_noisy.data());
        expect_rounded(y, wide_y, "dropout " + what);
        expect_rounded(noisy, wide_noisy, "noise " + what);
        for (std::size_t i = 0; i < y.size(); ++i)
          ASSERT_EQ(to_float(y.data()[i]) == 0.0F, wide_y[i] == 0.0F) << what << " " << i;
      }
}

TYPED_TEST(ElementwiseHalf, NothingIsWrittenPastTheEnd) {
  for (const Level& level : levels())
    for (std::int64_t count : {1, 17, 100}) {
      const Stored<TypeParam> y(random_values(count + 1, 8, 0.5, 1.0));
      const TypeParam guard = y.data()[count];
      level.elementwise.zero(TestLane(), count, y.data());
      level.elementwise.relu(TestLane(), count, y.data(), y.data());
      EXPECT_EQ(y.data()[count].bits, guard.bits) << level.name;
    }
}

/// Every number of the type and some hundred thousand float32 numbers, in registers and one by one.
TYPED_TEST(ElementwiseHalf, EveryLevelConvertsLikeScalars) {
  using T = TypeParam;
  std::vector<T> halves;
  for (std::uint32_t bits = 0; bits < 0x10000U; ++bits) halves.push_back({static_cast<std::uint16_t>(bits)});
  std::vector<float> wide;
  for (std::uint64_t bits = 0; bits < 0x100000000U; bits += 0x4FF1U)
    wide.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  for (const T half : halves) {  // the midpoints between adjacent numbers: ties
    const float value = to_float(half);
    wide.push_back(std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) + 0x1000U));
    wide.push_back(value + 0x1p-25F);
  }
  const auto bits_of = [](float value) { return std::bit_cast<std::uint32_t>(value); };
  for (const Level& level : levels())
    for (const std::size_t first : {0U, 1U, 5U}) {
      std::vector<float> widened(halves.size() - first);
      level.elementwise.convert(TestLane(), static_cast<std::int64_t>(widened.size()), halves.data() + first,
                                widened.data());
      for (std::size_t i = 0; i < widened.size(); ++i) {
        const float expected = to_float(halves[first + i]);
        // A NaN may be quieted, but the same way everywhere.
        const bool quiet = std::isnan(expected) && dtype_of<T> == DType::f16;
        ASSERT_EQ(bits_of(widened[i]), bits_of(expected) | (quiet ? 0x00400000U : 0U)) << level.name;
      }
      std::vector<T> narrowed(wide.size() - first);
      level.elementwise.convert(TestLane(), static_cast<std::int64_t>(narrowed.size()), wide.data() + first,
                                narrowed.data());
      for (std::size_t i = 0; i < narrowed.size(); ++i)
        ASSERT_EQ(narrowed[i].bits, from_float<T>(wide[first + i]).bits)
            << level.name << " " << wide[first + i];
    }
}

TYPED_TEST(ElementwiseHalf, MixedTypesInACallAreABug) {
  const Stored<TypeParam> half(8);
  const Floats full(8);
  for (const Level& level : levels()) {
    EXPECT_THROW(level.elementwise.add(TestLane(), 8, half.data(), full.data(), half.data(), false), Error);
    EXPECT_THROW(level.elementwise.relu(TestLane(), 8, half.data(), full.data()), Error);
  }
}

/// Nodes of a compressed sum: rounded, added in float32, and rounded again if they are the total.
TEST(ElementwiseRounded, SumsOfNodesAreRoundedElementByElement) {
  const auto kept = [](float value) { return to_float(from_float<BFloat16>(value)); };
  const auto same = [](float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); };
  for (const Level& level : levels())
    for (std::int64_t count : {0, 1, 3, 15, 16, 17, 63, 64, 100, 1001}) {
      const Floats a(special_values(count, 1)), b(special_values(count, 2)), rounded(a.values());
      const Stored<BFloat16> half(b.values());
      level.elementwise.round_to_bfloat16(TestLane(), count, rounded.data());
      for (std::int64_t i = 0; i < count; ++i)
        ASSERT_TRUE(same(rounded.data()[i], kept(a.data()[i]))) << level.name << " " << i;
      for (const bool total : {false, true}) {
        const Floats floats(a.values()), halves(a.values());
        level.elementwise.accumulate_rounded(TestLane(), count, floats.data(), b.data(), total);
        level.elementwise.accumulate_rounded(TestLane(), count, halves.data(), half.data(), total);
        for (std::int64_t i = 0; i < count; ++i) {
          const float sum = kept(a.data()[i]) + kept(b.data()[i]), expected = total ? kept(sum) : sum;
          ASSERT_TRUE(same(floats.data()[i], expected)) << level.name << " " << i;
          ASSERT_TRUE(same(halves.data()[i], expected)) << level.name << " " << i;
        }
      }
    }
}

}  // namespace
}  // namespace lockstep
