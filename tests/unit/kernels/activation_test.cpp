// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/activation.h"

#include <gtest/gtest.h>

#include <limits>

#include "core/error.h"
#include "unit/kernels/activation_testing.h"
#include "unit/kernels/stored_testing.h"

namespace lockstep {
namespace {

/// Largest relative error of a result: a few roundings of intermediate results, and 3e-7 of the polynomials.
constexpr double kShare = 1.5e-6;
/// For gelu's tanh form: the argument of its exponential is up to 87, rounded to 24 bits a few times.
constexpr double kShareOfTanhForm = 1e-5;
/// Smaller results are zero or denormal.
constexpr double kSmallest = 1.2e-38;

Values hard_inputs() {
  Values x = random_values(2000, 4, -20.0, 20.0);
  for (double magnitude : {0.0,  1e-38, 1e-20, 1e-8, 1e-4, 0.03,  0.5, 1.0, 5.999, 6.0,  6.001, 12.9,
                           13.3, 30.0,  43.0,  86.0, 87.4, 103.0, 1e3, 1e6, 1e13,  1e20, 3e38})
    for (double sign : {-1.0, 1.0}) x.push_back(static_cast<double>(static_cast<float>(sign * magnitude)));
  return x;
}

/// |actual - expected| <= share * |expected|, plus a tolerance for results near the smallest number.
void expect_digits(const Values& actual, const Values& expected, const Values& x, double share,
                   const std::string& what) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double room = share * std::abs(expected[i]) + std::abs(x[i]) * 2 * kSmallest + 2 * kSmallest;
    ASSERT_LE(std::abs(actual[i] - expected[i]), room)
        << what << " of " << x[i] << " is " << actual[i] << ", not " << expected[i];
  }
}

TEST(Activation, IsAccurateEverywhere) {
  const Values x = hard_inputs();
  const auto count = static_cast<std::int64_t>(x.size());
  for (const Level& level : levels())
    for (const auto& [name, activation] : activations()) {
      Values y, dx;
      for (double value : x) {
        y.push_back(reference::activation(activation, value));
        dx.push_back(reference::activation_derivative(activation, value));
      }
      const double share = activation.kind == ActivationKind::gelu_tanh ? kShareOfTanhForm : kShare;
      const Floats in(x), ones(Values(x.size(), 1.0));
      Floats out(count), gradient(count);
      level.activation.forward(TestLane(), activation, count, in.data(), out.data());
      level.activation.backward(TestLane(), activation, count, ones.data(), in.data(), gradient.data());
      expect_digits(out.values(), y, x, share, level.name + " " + name);
      // Where the derivatives of gelu and silu cross zero, their two terms cancel.
      const bool crosses = activation.kind == ActivationKind::gelu_tanh ||
                           activation.kind == ActivationKind::gelu_erf ||
                           activation.kind == ActivationKind::silu;
      if (crosses)
        expect_close(gradient.values(), dx, Values(x.size(), 1.0), kShare, 0.0,
                     level.name + " derivative of " + name);
      else
        expect_digits(gradient.values(), dx, x, share, level.name + " derivative of " + name);
    }
}

TEST(Activation, NanStaysNanAndAffectsNoOtherElement) {
  for (const Level& level : levels())
    for (const auto& [name, activation] : activations())
      for (std::int64_t count : {1, 5, 16, 37})
        for (std::int64_t at = 0; at < count; ++at) {
          Floats x(random_values(count, 6));
          x[static_cast<std::size_t>(at)] = std::numeric_limits<float>::quiet_NaN();
          const Floats in_place = x.copy();
          level.activation.forward(TestLane(), activation, count, x.data(), in_place.data());
          for (std::int64_t i = 0; i < count; ++i)
            ASSERT_EQ(std::isnan(in_place[static_cast<std::size_t>(i)]), i == at)
                << level.name << " " << name;
          const Floats dy = x.copy();  // a NaN gradient
          level.activation.backward(TestLane(), activation, count, dy.data(),
                                    Floats(Values(x.size(), 0.5)).data(), dy.data());
          ASSERT_TRUE(std::isnan(dy[static_cast<std::size_t>(at)])) << level.name << " " << name;
        }
}

TEST(Activation, BitsAreEqualAtEveryLevelAndAddress) {
  const Values x = hard_inputs();
  const auto most = static_cast<std::int64_t>(x.size());
  for (const auto& [name, activation] : activations())
    for (std::int64_t count : {std::int64_t{1}, std::int64_t{3}, std::int64_t{17}, std::int64_t{100}, most})
      for (int shift : {0, 1}) {
        const Floats in(Values(x.end() - count, x.end()), shift), dy(random_values(count, 5), shift);
        Floats first(count), first_dx(count);
        for (const Level& level : levels()) {
          Floats y(count, shift), dx(count, shift);
          level.activation.forward(TestLane(), activation, count, in.data(), y.data());
          level.activation.backward(TestLane(), activation, count, dy.data(), in.data(), dx.data());
          if (level.name == "baseline") first = y.copy(), first_dx = dx.copy();
          EXPECT_TRUE(same_bits(y, first)) << level.name << " " << name;
          EXPECT_TRUE(same_bits(dx, first_dx)) << level.name << " derivative of " << name;
        }
      }
}

template <typename T>
void expect_those_of_float32(const Level& level, const NamedActivation& named, std::int64_t count,
                             int shift) {
  const std::string what = fmt::format("{} {} {} shift {}", level.name, named.name, count, shift);
  const Values inputs = hard_inputs();
  Stored<T> x(Values(inputs.end() - count, inputs.end()), shift), dy(random_values(count, 5), shift);
  x.data()[0] = from_float<T>(std::numeric_limits<float>::quiet_NaN());
  const Floats wide_x = x.widened(), wide_dy = dy.widened();
  Stored<T> y(count, shift), dx(count, shift);
  Floats wide_y(count), wide_dx(count);
  level.activation.forward(TestLane(), named.activation, count, x.data(), y.data());
  level.activation.forward(TestLane(), named.activation, count, wide_x.data(), wide_y.data());
  level.activation.backward(TestLane(), named.activation, count, dy.data(), x.data(), dx.data());
  level.activation.backward(TestLane(), named.activation, count, wide_dy.data(), wide_x.data(),
                            wide_dx.data());
  expect_rounded(y, wide_y, what);
  expect_rounded(dx, wide_dx, "derivative of " + what);
  level.activation.forward(TestLane(), named.activation, count, x.data(), x.data());
  expect_rounded(x, wide_y, "in place " + what);
}

TEST(Activation, In16BitsIsFloat32RoundedOnce) {
  for (const Level& level : levels())
    for (const NamedActivation& named : activations())
      for (std::int64_t count : {1, 3, 17, 100, 2046})
        for (int shift : {0, 1}) {
          expect_those_of_float32<BFloat16>(level, named, count, shift);
          expect_those_of_float32<Float16>(level, named, count, shift);
        }
}

}  // namespace
}  // namespace lockstep
