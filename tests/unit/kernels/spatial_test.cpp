// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Margins and changes of resolution: values of the reference, and equal bits at every instruction-set level.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "unit/kernels/stored_testing.h"

namespace lockstep {
namespace {

std::int64_t inner_count(const MarginSpec& s) {
  return s.n * s.inner[0] * s.inner[1] * s.inner[2] * s.channels;
}
std::int64_t in_count(const UpsampleSpec& s) { return s.n * s.in[0] * s.in[1] * s.in[2] * s.channels; }
std::int64_t out_count(const UpsampleSpec& s) {
  return in_count(s) * s.factor[0] * s.factor[1] * s.factor[2];
}
std::string describe(const UpsampleSpec& s) {
  return fmt::format("{}x{}x{}x{}x{} by {}x{}x{}{}", s.n, s.in[0], s.in[1], s.in[2], s.channels, s.factor[0],
                     s.factor[1], s.factor[2], s.align_corners ? " corners" : "");
}

TEST(Margins, PadAndCropMoveEveryNumber) {
  for (const MarginSpec& s :
       {MarginSpec{.n = 2, .inner = {1, 3, 4}, .channels = 3, .before = {0, 1, 0}, .after = {0, 0, 2}},
        MarginSpec{.n = 3, .inner = {2, 3, 1}, .channels = 17, .before = {1, 0, 3}, .after = {2, 1, 1}},
        MarginSpec{.n = 1, .inner = {1, 1, 5}, .channels = 1, .before = {0, 0, 2}},
        MarginSpec{.n = 2, .inner = {2, 2, 2}, .channels = 16}})
    for (const Level& level : levels()) {
      const Values x = random_values(inner_count(s), 1), expected = reference::pad(s, x, -2.5);
      const Floats inner(x), back(inner_count(s)), outer(static_cast<std::int64_t>(expected.size()), 1);
      level.spatial.pad({}, s, inner.data(), -2.5F, outer.data());
      EXPECT_EQ(outer.values(), expected) << level.name;
      level.spatial.crop({}, s, outer.data(), back.data());
      EXPECT_TRUE(same_bits(back, inner)) << level.name;
    }
}

/// Margins of circular axes, also as wide as the axis, beside margins of a value.
std::vector<MarginSpec> circular_specs() {
  return {{.n = 2,
           .inner = {1, 3, 4},
           .channels = 3,
           .before = {0, 1, 2},
           .after = {0, 0, 1},
           .circular = {false, false, true}},
          {.n = 1,
           .inner = {1, 1, 5},
           .channels = 1,
           .before = {0, 0, 5},
           .after = {0, 0, 5},
           .circular = {false, false, true}},
          {.n = 2,
           .inner = {2, 3, 2},
           .channels = 70,
           .before = {1, 2, 1},
           .after = {2, 0, 2},
           .circular = {true, false, true}},
          {.n = 1,
           .inner = {1, 2, 3},
           .channels = 16,
           .before = {0, 1, 3},
           .after = {0, 2, 2},
           .circular = {true, true, true}}};
}

TEST(Margins, CircularAxesContinueAtTheirOtherEnd) {
  for (const MarginSpec& s : circular_specs()) {
    const Values x = random_values(inner_count(s), 1), expected = reference::pad(s, x, -2.5);
    const auto outer_count = static_cast<std::int64_t>(expected.size());
    // The gradient as the transpose: which inner element each outer one is.
    Values numbers(x.size()), dx(x.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<double>(i);
    const Values places = reference::pad(s, numbers, -1), dy = random_values(outer_count, 2);
    for (std::size_t o = 0; o < places.size(); ++o)
      if (places[o] >= 0) dx[static_cast<std::size_t>(places[o])] += dy[o];
    const Floats inner(x), douter(dy);
    std::vector<Floats> gradients;
    for (const Level& level : levels()) {
      const Floats outer(outer_count, 1), dinner(inner_count(s), 1);
      level.spatial.pad({}, s, inner.data(), -2.5F, outer.data());
      EXPECT_EQ(outer.values(), expected) << level.name;
      level.spatial.pad_backward({}, s, douter.data(), dinner.data());
      expect_close(dinner.values(), dx, Values(dx.size(), 1.0), 0.0, 27 * kRounding, level.name);
      gradients.push_back(dinner.copy());
      EXPECT_TRUE(same_bits(gradients.back(), gradients[0])) << level.name;
    }
  }
}

TEST(Margins, TheGradientOfPlainMarginsIsCropped) {
  const MarginSpec s{.n = 3, .inner = {2, 3, 1}, .channels = 17, .before = {1, 0, 3}, .after = {2, 1, 1}};
  const Values dy = random_values(3 * 5 * 4 * 5 * 17, 1);
  for (const Level& level : levels()) {
    const Floats outer(dy), cropped(inner_count(s)), gradient(inner_count(s));
    level.spatial.crop({}, s, outer.data(), cropped.data());
    level.spatial.pad_backward({}, s, outer.data(), gradient.data());
    EXPECT_TRUE(same_bits(gradient, cropped)) << level.name;
  }
}

/// The gradient as the transpose: dx[i] = sum over o of dy[o] times element o of the output for unit vector
/// i.
Values transposed(const UpsampleSpec& s, const Values& dy, bool bilinear) {
  Values dx;
  for (std::int64_t i = 0; i < in_count(s); ++i) {
    Values unit(static_cast<std::size_t>(in_count(s)));
    unit[static_cast<std::size_t>(i)] = 1.0;
    const Values y = reference::upsample(s, unit, bilinear);
    double sum = 0;
    for (std::size_t o = 0; o < y.size(); ++o) sum += y[o] * dy[o];
    dx.push_back(sum);
  }
  return dx;
}

std::vector<UpsampleSpec> specs(bool bilinear) {
  std::vector<UpsampleSpec> list{{.n = 2, .in = {1, 3, 4}, .channels = 3, .factor = {1, 2, 2}},
                                 {.n = 1, .in = {1, 1, 3}, .channels = 17, .factor = {1, 1, 4}},
                                 {.n = 1, .in = {1, 5, 2}, .channels = 16, .factor = {1, 3, 1}},
                                 {.n = 2, .in = {1, 1, 1}, .channels = 2, .factor = {1, 3, 5}},
                                 {.n = 1, .in = {1, 4, 3}, .channels = 1, .factor = {1, 5, 4}}};
  if (!bilinear) {
    list.push_back({.n = 2, .in = {3, 2, 2}, .channels = 5, .factor = {2, 3, 2}});
    return list;
  }
  const std::size_t plain = list.size();
  for (std::size_t i = 0; i < plain; ++i) {
    list.push_back(list[i]);
    list.back().align_corners = true;
  }
  return list;
}

TEST(Upsample, MatchesTheReferenceAtEveryLevel) {
  for (const bool bilinear : {false, true})
    for (const UpsampleSpec& s : specs(bilinear)) {
      const std::string what = (bilinear ? "bilinear " : "nearest ") + describe(s);
      const Values x = random_values(in_count(s), 1), dy = random_values(out_count(s), 2);
      const Floats x_data(x), dy_data(dy);
      const Values y = reference::upsample(s, x, bilinear), dx = transposed(s, dy, bilinear);
      std::vector<Floats> first;
      for (const Level& level : levels()) {
        const Floats y_data(out_count(s)), dx_data(in_count(s));
        if (bilinear) {
          level.spatial.upsample_bilinear({}, s, x_data.data(), y_data.data());
          level.spatial.upsample_bilinear_backward({}, s, dy_data.data(), dx_data.data());
        } else {
          level.spatial.upsample_nearest({}, s, x_data.data(), y_data.data());
          level.spatial.upsample_nearest_backward({}, s, dy_data.data(), dx_data.data());
        }
        // A position of up to 20 is rounded to 2 units of 2^-24 of it; two products and a sum per axis.
        expect_close(y_data.values(), y, Values(y.size(), 1.0), 0.0, bilinear ? 64 * kRounding : 0.0,
                     "y " + what);
        expect_close(dx_data.values(), dx, Values(dx.size(), 1.0), 0.0, 512 * kRounding, "dx " + what);
        if (first.empty()) {
          first.push_back(y_data.copy());
          first.push_back(dx_data.copy());
        }
        EXPECT_TRUE(same_bits(y_data, first[0])) << level.name << " " << what;
        EXPECT_TRUE(same_bits(dx_data, first[1])) << level.name << " " << what;
      }
    }
}

/// 16-bit values: float32's results on the same numbers, rounded once.
template <typename T>
class SpatialHalf : public testing::Test {};
using Types = testing::Types<BFloat16, Float16>;
TYPED_TEST_SUITE(SpatialHalf, Types);

TYPED_TEST(SpatialHalf, PadAndCropMoveEveryNumber) {
  const MarginSpec s{.n = 3, .inner = {2, 3, 1}, .channels = 17, .before = {1, 0, 3}, .after = {2, 1, 1}};
  for (const Level& level : levels())
    for (const int shift : {0, 1}) {
      const Stored<TypeParam> inner(random_values(inner_count(s), 1), shift), back(inner_count(s), shift);
      const Values expected = reference::pad(s, inner.values(), 0.1);
      const Stored<TypeParam> outer(static_cast<std::int64_t>(expected.size()), shift);
      level.spatial.pad({}, s, inner.data(), 0.1F, outer.data());
      level.spatial.crop({}, s, outer.data(), back.data());
      expect_rounded(outer, Floats(expected), level.name + " pad");
      expect_rounded(back, inner.widened(), level.name + " crop");
    }
}

TYPED_TEST(SpatialHalf, CircularMarginsAreFloat32RoundedOnce) {
  for (const MarginSpec& s : circular_specs())
    for (const Level& level : levels()) {
      const Stored<TypeParam> inner(random_values(inner_count(s), 1), 1), dinner(inner_count(s), 1);
      const Values expected = reference::pad(s, inner.values(), 0.1);
      const auto outer_count = static_cast<std::int64_t>(expected.size());
      const Stored<TypeParam> outer(outer_count, 1), douter(random_values(outer_count, 2), 1);
      const Floats full(inner_count(s));
      level.spatial.pad({}, s, inner.data(), 0.1F, outer.data());
      level.spatial.pad_backward({}, s, douter.data(), dinner.data());
      level.spatial.pad_backward({}, s, douter.widened().data(), full.data());
      expect_rounded(outer, Floats(expected), level.name + " pad");
      expect_rounded(dinner, full, level.name + " gradient");
    }
}

TYPED_TEST(SpatialHalf, UpsamplingIsFloat32RoundedOnce) {
  for (const bool bilinear : {false, true})
    for (UpsampleSpec s : specs(bilinear))
      for (const std::int64_t channels : {s.channels, std::int64_t{70}})
        for (const Level& level : levels()) {
          s.channels = channels;
          const std::string what = level.name + (bilinear ? " bilinear " : " nearest ") + describe(s);
          const Stored<TypeParam> x(random_values(in_count(s), 1), 1), dy(random_values(out_count(s), 2), 1),
              y(out_count(s), 1), dx(in_count(s), 1);
          const Floats full_y(out_count(s)), full_dx(in_count(s)), wide_x = x.widened(),
                                                                   wide_dy = dy.widened();
          const SpatialKernels& k = level.spatial;
          if (bilinear) {
            k.upsample_bilinear({}, s, x.data(), y.data());
            k.upsample_bilinear({}, s, wide_x.data(), full_y.data());
            k.upsample_bilinear_backward({}, s, dy.data(), dx.data());
            k.upsample_bilinear_backward({}, s, wide_dy.data(), full_dx.data());
          } else {
            k.upsample_nearest({}, s, x.data(), y.data());
            k.upsample_nearest({}, s, wide_x.data(), full_y.data());
            k.upsample_nearest_backward({}, s, dy.data(), dx.data());
            k.upsample_nearest_backward({}, s, wide_dy.data(), full_dx.data());
          }
          expect_rounded(y, full_y, what + " y");
          expect_rounded(dx, full_dx, what + " dx");
        }
}

}  // namespace
}  // namespace lockstep
