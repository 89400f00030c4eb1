// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Batch normalisation with 16-bit activations. Stored results are the float32 kernels' results on the same
// numbers, rounded once; sums and statistics have the same bits.
#include <gtest/gtest.h>

#include <limits>

#include "unit/kernels/stored_testing.h"

namespace lockstep {
namespace {

template <typename T>
class NormHalf : public testing::Test {};
using Types = testing::Types<BFloat16, Float16>;
TYPED_TEST_SUITE(NormHalf, Types);

struct Size {
  std::int64_t rows, channels;
};
const std::vector<Size> kSizes{{0, 5},    {1, 1},    {7, 3},    {130, 10}, {333, 16},
                               {300, 64}, {129, 96}, {70, 100}, {97, 130}, {1000, 1}};

template <typename Body>
void for_each_case(const Body& body) {
  for (const Level& level : levels())
    for (const Size size : kSizes)
      for (const int shift : {0, 1})
        body(level, size, shift,
             level.name + " " + std::to_string(size.rows) + "x" + std::to_string(size.channels) + " shift " +
                 std::to_string(shift));
}

TYPED_TEST(NormHalf, MomentsAreThoseOfFloat32) {
  for_each_case([](const Level& level, Size size, int shift, const std::string& what) {
    const Stored<TypeParam> x(random_values(size.rows * size.channels, 1, -2.0, 3.0), shift);
    Values leaf(static_cast<std::size_t>(1 + 2 * size.channels), -1.0), expected = leaf;
    level.norm.moments(TestLane(), size.rows, size.channels, x.data(), leaf.data());
    level.norm.moments(TestLane(), size.rows, size.channels, x.widened().data(), expected.data());
    EXPECT_EQ(leaf, expected) << what;
  });
}

TYPED_TEST(NormHalf, NormalizeIsFloat32RoundedOnce) {
  for_each_case([](const Level& level, Size size, int shift, const std::string& what) {
    const std::int64_t count = size.rows * size.channels;
    const Stored<TypeParam> x(random_values(count, 4), shift), r(random_values(count, 5), shift);
    const Floats a(random_values(size.channels, 6), shift), b(random_values(size.channels, 7), shift),
        m(random_values(size.channels, 8), shift);
    for (const bool relu : {false, true})
      for (const bool add : {false, true}) {
        Stored<TypeParam> y(count, shift);
        const Floats expected(count), wide_r = r.widened();
        level.norm.normalize(TestLane(), size.rows, size.channels, x.data(), m.data(), a.data(), b.data(),
                             add ? ConstData(r.data()) : ConstData(), relu, y.data());
        level.norm.normalize(TestLane(), size.rows, size.channels, x.widened().data(), m.data(), a.data(),
                             b.data(), add ? wide_r.data() : nullptr, relu, expected.data());
        expect_rounded(y, expected, what);
      }
  });
}

struct Case {
  bool second, write, relu, mask_from_x;
};

/// All inputs of a backward pass: numbers of type T, and the same numbers in float32.
template <typename T>
struct BackwardNumbers {
  BackwardNumbers(Size size, int shift)
      : x(random_values(size.rows * size.channels, 21, -1.0, 2.0), shift),
        dy(random_values(size.rows * size.channels, 22), shift),
        dy2(random_values(size.rows * size.channels, 23), shift),
        y(random_values(size.rows * size.channels, 24), shift),
        wide_x(x.widened()),
        wide_dy(dy.widened()),
        wide_dy2(dy2.widened()),
        wide_y(y.widened()),
        mean(random_values(size.channels, 25)),
        inverse(random_values(size.channels, 26, 0.5, 2.0)),
        scale(random_values(size.channels, 27)),
        offset(random_values(size.channels, 28)),
        a(random_values(size.channels, 29)),
        b(random_values(size.channels, 30)),
        d(random_values(size.channels, 31)) {}

  NormKernels::Gradient gradient(Case option, bool wide) const {
    NormKernels::Gradient g;
    g.x = wide ? ConstData(wide_x.data()) : ConstData(x.data());
    g.dy = wide ? ConstData(wide_dy.data()) : ConstData(dy.data());
    if (option.second) g.dy2 = wide ? ConstData(wide_dy2.data()) : ConstData(dy2.data());
    if (option.relu && !option.mask_from_x) g.y = wide ? ConstData(wide_y.data()) : ConstData(y.data());
    g.mask_from_x = option.mask_from_x;
    g.mean = mean.data();
    g.inverse_std = inverse.data();
    g.scale = scale.data();
    g.shift = offset.data();
    return g;
  }

  Stored<T> x, dy, dy2, y;
  Floats wide_x, wide_dy, wide_dy2, wide_y, mean, inverse, scale, offset, a, b, d;
};

template <typename T>
void check_backward(const Level& level, Size size, int shift, Case option, const std::string& name) {
  const std::string what = name + (option.second ? " dy2" : "") + (option.write ? " g_out" : "") +
                           (option.relu ? " relu" : "") + (option.mask_from_x ? " from x" : "");
  const std::int64_t count = size.rows * size.channels;
  const BackwardNumbers<T> n(size, shift);
  const NormKernels::Gradient half = n.gradient(option, false), full = n.gradient(option, true);
  const std::size_t width = static_cast<std::size_t>(size.channels);
  Values sum_g(width, -1.0), sum_gx(width, -1.0), expected_g(width), expected_gx(width);
  const Stored<T> g(count, shift), dx(count, shift);
  const Floats full_g(count), full_dx(count);
  level.norm.backward_sums(TestLane(), size.rows, size.channels, half, option.write ? Data(g.data()) : Data(),
                           sum_g.data(), sum_gx.data());
  level.norm.backward_sums(TestLane(), size.rows, size.channels, full, option.write ? full_g.data() : nullptr,
                           expected_g.data(), expected_gx.data());
  EXPECT_EQ(sum_g, expected_g) << what;
  EXPECT_EQ(sum_gx, expected_gx) << what;
  if (option.write) expect_rounded(g, full_g, "g " + what);
  level.norm.backward_apply(TestLane(), size.rows, size.channels, half, n.a.data(), n.b.data(), n.d.data(),
                            dx.data());
  level.norm.backward_apply(TestLane(), size.rows, size.channels, full, n.a.data(), n.b.data(), n.d.data(),
                            full_dx.data());
  expect_rounded(dx, full_dx, "dx " + what);
  // In place over dy.
  level.norm.backward_apply(TestLane(), size.rows, size.channels, half, n.a.data(), n.b.data(), n.d.data(),
                            n.dy.data());
  expect_rounded(n.dy, full_dx, "dx over dy " + what);
}

TYPED_TEST(NormHalf, BackwardIsFloat32RoundedOnceAndSumsAreNotRounded) {
  for_each_case([](const Level& level, Size size, int shift, const std::string& what) {
    for (const bool second : {false, true})
      for (const bool write : {false, true}) {
        check_backward<TypeParam>(level, size, shift, {second, write, false, false}, what);
        check_backward<TypeParam>(level, size, shift, {second, write, true, false}, what);
        check_backward<TypeParam>(level, size, shift, {second, write, true, true}, what);
      }
  });
}

/// The mask without y equals the mask from y, also where y is a small positive number that was rounded to
/// zero.
template <typename T>
class NormMask : public testing::Test {};
using AllTypes = testing::Types<float, BFloat16, Float16>;
TYPED_TEST_SUITE(NormMask, AllTypes);

TYPED_TEST(NormMask, FromXMatchesTheStoredOutput) {
  // Results of half of the type's smallest number (a tie, rounded to zero), slightly more, less, and more.
  const double least = sizeof(TypeParam) == 4               ? 0x1p-149
                       : dtype_of<TypeParam> == DType::bf16 ? 0x1p-133
                                                            : 0x1p-24;
  const Values factors{0.5, 0.51, 0.49, 0.25, 1.0, -0.51, 1.5, 0.0};
  Values x, scale;
  const Values samples{least, -least, 2 * least,    3 * least, 1.0,
                       -1.0,  0.0,    std::nan(""), 60000.0,   std::numeric_limits<double>::infinity()};
  const std::int64_t channels = 72, rows = static_cast<std::int64_t>(samples.size());
  for (std::int64_t c = 0; c < channels; ++c) scale.push_back(factors[static_cast<std::size_t>(c) % 8]);
  for (const double sample : samples) x.insert(x.end(), static_cast<std::size_t>(channels), sample);
  const Stored<TypeParam> xs(x), dy(random_values(rows * channels, 3, 0.5, 1.0));
  const Floats scales(scale), zeros(Values(scale.size(), 0.0)), ones(Values(scale.size(), 1.0));
  for (const Level& level : levels()) {
    const Stored<TypeParam> y(rows * channels), by_y(rows * channels), by_x(rows * channels),
        dx_by_y(rows * channels), dx_by_x(rows * channels);
    level.norm.normalize(TestLane(), rows, channels, xs.data(), zeros.data(), scales.data(), zeros.data(),
                         nullptr, true, y.data());
    int rounded_to_zero = 0;
    for (std::size_t i = 0; i < x.size(); ++i)
      rounded_to_zero += static_cast<double>(to_float(xs.data()[i])) * scale[i % scale.size()] > 0.0 &&
                         to_float(y.data()[i]) == 0.0F;
    EXPECT_GE(rounded_to_zero, 3 * channels / 8) << "the test needs such numbers";
    NormKernels::Gradient from_y, from_x;
    from_y.x = from_x.x = xs.data();
    from_y.dy = from_x.dy = dy.data();
    from_y.mean = from_x.mean = zeros.data();
    from_y.inverse_std = from_x.inverse_std = ones.data();
    from_y.y = y.data();
    from_x.mask_from_x = true;
    from_x.scale = scales.data();
    from_x.shift = zeros.data();
    Values sum_y(scale.size()), sum_x(scale.size()), ignored(scale.size());
    level.norm.backward_sums(TestLane(), rows, channels, from_y, by_y.data(), sum_y.data(), ignored.data());
    level.norm.backward_sums(TestLane(), rows, channels, from_x, by_x.data(), sum_x.data(), ignored.data());
    level.norm.backward_apply(TestLane(), rows, channels, from_y, ones.data(), zeros.data(), zeros.data(),
                              dx_by_y.data());
    level.norm.backward_apply(TestLane(), rows, channels, from_x, ones.data(), zeros.data(), zeros.data(),
                              dx_by_x.data());
    expect_rounded(by_x, by_y.widened(), level.name + " g");
    expect_rounded(dx_by_x, dx_by_y.widened(), level.name + " dx");
    EXPECT_EQ(sum_x, sum_y) << level.name;
  }
}

}  // namespace
}  // namespace lockstep
