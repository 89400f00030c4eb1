// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Convolution and dense primitives with 16-bit activations, at the level that LOCKSTEP_ISA allows. bfloat16
// uses oneDNN's primitives if the processor multiplies it; otherwise, and for float16, they run on widened
// numbers.
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "core/cpu.h"
#include "core/error.h"
#include "kernels/kernel_table.h"
#include "kernels/transposed_convolution.h"
#include "unit/kernels/linear_half_testing.h"

namespace lockstep {
namespace {

template <typename T>
class LinearHalf : public testing::Test {};
using Types = testing::Types<BFloat16, Float16>;
struct TypeNames {
  template <typename T>
  static std::string GetName(int) {
    return std::string(name_of(dtype_of<T>));
  }
};
TYPED_TEST_SUITE(LinearHalf, Types, TypeNames);

template <typename T, typename Spec>
void check_whole_numbers(const Spec& s) {
  const Values x = whole_numbers(x_count(s), 1), w = whole_numbers(w_count(s), 2),
               dy = whole_numbers(y_count(s), 3), b = whole_numbers(channels_of(s), 4);
  // A bias that T cannot represent: it must not be rounded to T on its own.
  Values fine = b;
  for (double& value : fine) value += 0x1p-8;
  const Results<T> r = run<T>(*make(s, T{}), Stored<T>(x), Stored<T>(dy), Floats(almost<T>(w)), Floats(fine));
  expect_exact(r, exact_of(s, x, dy, w, fine), describe(s));
}

TYPED_TEST(LinearHalf, ConvolutionsOfIntegersAreExactAndRoundedOnce) {
  for (const ConvolutionSpec& s : variants(convolution_specs())) check_whole_numbers<TypeParam>(s);
}
TYPED_TEST(LinearHalf, DenseProductsOfIntegersAreExactAndRoundedOnce) {
  for (const DenseSpec& s : variants(dense_specs())) check_whole_numbers<TypeParam>(s);
}

/// Error of a rounding to T of numbers that may be subnormal in T.
template <typename T>
constexpr double kLeastRounding = dtype_of<T> == DType::f16 ? 0x1p-25 : 0x1p-126;

template <typename T, typename Spec>
void check_against_reference(const Spec& s) {
  const Values x = rounded<T>(random_values(x_count(s), 1)), dy = rounded<T>(random_values(y_count(s), 3)),
               w = random_values(w_count(s), 2), b = random_values(channels_of(s), 4);
  const auto primitive = make(s, T{});
  const Results<T> r = run<T>(*primitive, Stored<T>(x), Stored<T>(dy), Floats(w), Floats(b));
  const Exact exact = exact_of(s, x, dy, rounded<T>(w), b);
  Spec linear = s;
  linear.relu = false;
  const Exact magnitude = exact_of(linear, absolute(x), absolute(dy), absolute(rounded<T>(w)), absolute(b));
  const Lengths length = lengths_of(s);
  // The sum's error, then one rounding of at most the magnitude plus that error.
  const auto stored = [](std::int64_t k) { return dot_error(k) + kRoundingTo<T> * (1.0 + dot_error(k)); };
  expect_close(r.y.values(), exact.y, magnitude.y, stored(length.y + 1), kLeastRounding<T>,
               "y " + describe(s));
  expect_close(r.dx.values(), exact.dx, magnitude.dx, stored(length.dx), kLeastRounding<T>,
               "dx " + describe(s));
  expect_close(r.dw.values(), exact.dw, magnitude.dw, dot_error(length.dw), 0.0, "dw " + describe(s));
  EXPECT_EQ(primitive->flops(), 2.0 * static_cast<double>(y_count(s)) * static_cast<double>(length.y));
}

TYPED_TEST(LinearHalf, ConvolutionsMatchTheReference) {
  for (const ConvolutionSpec& s : variants(convolution_specs())) check_against_reference<TypeParam>(s);
}
TYPED_TEST(LinearHalf, DenseProductsMatchTheReference) {
  for (const DenseSpec& s : variants(dense_specs())) check_against_reference<TypeParam>(s);
}

/// Small shapes of all kinds, since a library's kernels differ by channels, strides and padding.
std::vector<ConvolutionSpec> random_shapes(int count) {
  std::vector<ConvolutionSpec> all;
  for (std::uint32_t i = 0; static_cast<int>(all.size()) < count; ++i) {
    std::uint32_t next = 0;
    const auto draw = [&](std::int64_t first, std::int64_t last) {
      const PhiloxBlock words = philox_words(11, i, 0, 0, next++);
      return first + static_cast<std::int64_t>(words[0] % static_cast<std::uint32_t>(last - first + 1));
    };
    ConvolutionSpec s;
    s.n = draw(1, 3);
    constexpr std::int64_t kChannels[] = {1, 2, 3, 5, 8, 16, 17, 32};
    s.in_c = kChannels[draw(0, 7)], s.out_c = kChannels[draw(0, 7)];
    const bool volume = draw(0, 2) == 0;
    if (draw(0, 1) == 0) s.in_c = 16 * draw(1, 3), s.out_c = 16 * draw(1, 3);
    bool fits = true;
    const auto axis = [&](std::int64_t& in, std::int64_t& out, std::int64_t& kernel, std::int64_t& stride,
                          std::int64_t& dilation, std::int64_t& before, std::int64_t& after) {
      in = draw(1, 7), kernel = draw(1, 3), stride = draw(1, 3), dilation = draw(0, 3) == 0 ? 2 : 1;
      const std::int64_t span = (kernel - 1) * dilation + 1;
      before = draw(0, span - 1), after = draw(0, span - 1);
      fits = fits && in + before + after >= span;
      out = (in + before + after - span) / stride + 1;
    };
    if (volume) axis(s.in_d, s.out_d, s.kernel_d, s.stride_d, s.dilation_d, s.pad_front, s.pad_back);
    axis(s.in_h, s.out_h, s.kernel_h, s.stride_h, s.dilation_h, s.pad_top, s.pad_bottom);
    axis(s.in_w, s.out_w, s.kernel_w, s.stride_w, s.dilation_w, s.pad_left, s.pad_right);
    if (fits) all.push_back(s);
  }
  return all;
}

TYPED_TEST(LinearHalf, ConvolutionsOfAnyShapeAreExactForIntegers) {
  for (const ConvolutionSpec& s : random_shapes(400)) check_whole_numbers<TypeParam>(s);
}
TYPED_TEST(LinearHalf, DenseProductsOfAnyShapeAreExactForIntegers) {
  for (std::uint32_t i = 0; i < 300; ++i) {
    const PhiloxBlock words = philox_words(13, i, 0, 0, 0);
    check_whole_numbers<TypeParam>(
        DenseSpec{.n = 1 + words[0] % 70, .in = 1 + words[1] % 70, .out = 1 + words[2] % 70});
  }
}

/// The product is rounded; bias and relu are a separate pass.
TYPED_TEST(LinearHalf, TransposedConvolutionsOfIntegersAreExact) {
  using T = TypeParam;
  for (ConvolutionSpec s : variants(convolution_specs())) {
    s.dtype = dtype_of<T>;
    const Values x = whole_numbers(y_count(s), 1), w = whole_numbers(w_count(s), 2),
                 dy = whole_numbers(x_count(s), 3), b = whole_numbers(s.in_c, 4);
    const Results<T> r = run<T>(*make_transposed_convolution(cpu_kernels(), s, 1), Stored<T>(x),
                                Stored<T>(dy), Floats(almost<T>(w)), Floats(b));
    Exact exact{rounded<T>(reference::convolution_backward_data(s, x, w)), {}, {}};
    for (std::size_t i = 0; i < exact.y.size(); ++i) {
      if (s.bias) exact.y[i] += b[i % b.size()];
      if (s.relu) exact.y[i] = std::max(exact.y[i], 0.0);
    }
    ConvolutionSpec plain = s;
    plain.relu = false;
    exact.dx = reference::convolution(plain, dy, w, {});
    exact.dw = reference::convolution_backward_weights(s, dy, x);
    expect_exact(r, exact, "transposed " + describe(s));
  }
}

template <typename T, typename Spec>
void check_lanes(Spec s) {
  s.bias = s.relu = true;
  const auto primitive = make(s, T{}, 2), alone = make(s, T{});
  const Stored<T> x(random_values(x_count(s), 1)), dy(random_values(y_count(s), 3));
  const Floats w(random_values(w_count(s), 2)), b(random_values(channels_of(s), 4));
  EXPECT_TRUE(primitive->same_packing(*alone));
  const Results<T> expected = run<T>(*alone, x, dy, w, b);
  const auto same = [](const Stored<T>& one, const Stored<T>& other) {
    return std::memcmp(one.data(), other.data(), one.size() * sizeof(T)) == 0;
  };
  const auto work = [&](int lane) {
    for (int repeat = 0; repeat < 2; ++repeat) {
      const Results<T> r = run<T>(*primitive, x, dy, w, b, lane);
      EXPECT_TRUE(same(r.y, expected.y)) << describe(s);
      EXPECT_TRUE(same(r.dx, expected.dx)) << describe(s);
      EXPECT_TRUE(same_bits(r.dw, expected.dw)) << describe(s);
    }
  };
  std::thread other(work, 1);
  work(0);
  other.join();
  s.training = false;
  const Results<T> inference = run<T>(*make(s, T{}), x, dy, w, b, 0, false);
  EXPECT_TRUE(same(inference.y, expected.y)) << "inference " << describe(s);
}

TYPED_TEST(LinearHalf, SameBitsOnEveryLaneAndRunAndInInference) {
  for (const ConvolutionSpec& s : convolution_specs()) check_lanes<TypeParam>(s);
  for (const DenseSpec& s : dense_specs()) check_lanes<TypeParam>(s);
}

/// If same_packing() is true for two primitives, each can use the other's pack.
TYPED_TEST(LinearHalf, PacksAreSharedIfSamePackingIsTrue) {
  using T = TypeParam;
  const DType type = dtype_of<T>;
  const Values w = whole_numbers(40 * 24, 2);
  int shared = 0;
  for (const std::int64_t n : {1, 4, 64})
    for (const std::int64_t other : {2, 5, 64}) {
      const DenseSpec owner{.n = n, .in = 40, .out = 24, .dtype = type};
      const DenseSpec user{.n = other, .in = 40, .out = 24, .dtype = type},
          plain{.n = n, .in = 40, .out = 24};
      const auto packing = cpu_kernels().make.dense(owner, 1), using_it = cpu_kernels().make.dense(user, 1);
      EXPECT_GT(packing->packed_bytes(), 0U);
      EXPECT_FALSE(packing->same_packing(*cpu_kernels().make.dense(plain, 1)));
      if (!using_it->same_packing(*packing)) continue;
      ++shared;
      const Values x = whole_numbers(other * 40, 1), dy = whole_numbers(other * 24, 3);
      const TestLane lane(std::max(packing->scratch_bytes(), using_it->scratch_bytes()));
      const Buffer packed(cpu_device(), packing->packed_bytes());
      packing->pack(lane, Floats(w).data(), packed.data());
      const Stored<T> from(x), gradient(dy), y(other * 24), dx(other * 40);
      using_it->forward(lane, from.data(), nullptr, packed.data(), nullptr, y.data());
      using_it->backward_data(lane, gradient.data(), nullptr, packed.data(), dx.data());
      expect_rounded(y, Floats(reference::dense(user, x, w, {})), "y");
      expect_rounded(dx, Floats(reference::dense_backward_data(user, dy, w)), "dx");
    }
  EXPECT_GE(shared, 1);
}

/// float32 y and dx are the sums themselves, with a bias that T cannot represent.
TYPED_TEST(LinearHalf, WideResultsAreNotRounded) {
  using T = TypeParam;
  for (DenseSpec s : variants(dense_specs())) {
    s.dtype = dtype_of<T>;
    const Values x = whole_numbers(x_count(s), 1), w = whole_numbers(w_count(s), 2),
                 dy = whole_numbers(y_count(s), 3);
    Values b = whole_numbers(s.out, 4);
    for (double& value : b) value += 0x1p-12;
    for (const bool wide_y : {true, false}) {
      s.wide_y = wide_y, s.wide_dx = !wide_y;
      const auto primitive = cpu_kernels().make.dense(s, 1);
      const TestLane lane(primitive->scratch_bytes());
      const Buffer packed(cpu_device(), primitive->packed_bytes());
      const Stored<T> from(x), gradient(dy), narrow_y(y_count(s)), narrow_dx(x_count(s));
      const Floats y(y_count(s)), dx(x_count(s)), dw(w_count(s)), weights(almost<T>(w)), bias(b);
      primitive->pack(lane, weights.data(), packed.data());
      primitive->forward(lane, from.data(), nullptr, packed.data(), bias.data(),
                         wide_y ? Data(y.data()) : Data(narrow_y.data()));
      primitive->backward_data(lane, gradient.data(), nullptr, packed.data(),
                               wide_y ? Data(narrow_dx.data()) : Data(dx.data()));
      primitive->backward_weights(lane, from.data(), gradient.data(), dw.data());
      const Exact exact = exact_of(s, x, dy, w, b);
      const std::string what = fmt::format("{} wide y {}", describe(s), wide_y);
      if (wide_y) {
        expect_equal(y, exact.y, "y " + what);
        expect_rounded(narrow_dx, Floats(exact.dx), "dx " + what);
      } else {
        expect_rounded(narrow_y, Floats(exact.y), "y " + what);
        expect_equal(dx, exact.dx, "dx " + what);
      }
      expect_equal(dw, exact.dw, "dw " + what);
    }
  }
}

TYPED_TEST(LinearHalf, NanAndInfinityReachTheOutput) {
  using T = TypeParam;
  ConvolutionSpec c = convolution(1, 4, 4, 16, 16, 1, 1, 0);
  DenseSpec d;
  d.n = 16, d.in = 16, d.out = 16;
  for (bool relu : {false, true}) {
    c.relu = d.relu = relu;
    const Stored<T> x(random_values(16 * 16, 1)), dy(random_values(16 * 16, 3));
    const Floats w(random_values(16 * 16, 2)), none(16);
    x.data()[3] = from_float<T>(std::nanf(""));
    x.data()[16 + 5] = from_float<T>(HUGE_VALF);
    w[5 * 16 + 2] = 1.0F;
    const auto check = [&](const LinearPrimitive& primitive, const char* what) {
      const Values y = run<T>(primitive, x, dy, w, none).y.values();
      EXPECT_TRUE(std::isnan(y[0])) << what << relu;
      EXPECT_EQ(y[16 + 2], HUGE_VAL) << what << relu;
    };
    check(*make(c, T{}), "convolution, relu ");
    check(*make(d, T{}), "dense, relu ");
  }
}

/// Nothing is widened: the scratch has no room for it.
TEST(LinearBfloat16, UsesTheLibraryIfTheProcessorMultipliesIt) {
#if defined(__x86_64__)
  const char* const wanted = std::getenv("LOCKSTEP_BFLOAT16");
  if (isa_level() != IsaLevel::avx512 || __builtin_cpu_supports("avx512bf16") == 0 || wanted == nullptr ||
      std::string_view(wanted) != "avx512")
    GTEST_SKIP() << "this processor has no AVX-512 BF16, or nothing requests it";
  const auto dense = make(DenseSpec{.n = 64, .in = 1024, .out = 1024}, BFloat16{});
  EXPECT_LT(dense->scratch_bytes(), 64 * 1024 * sizeof(float));
  const ConvolutionSpec s = convolution(32, 16, 16, 32, 32, 3, 1, 1);
  EXPECT_LT(make(s, BFloat16{})->scratch_bytes(), static_cast<std::size_t>(x_count(s)) * sizeof(float));
  // The start-up check compares this text between ranks.
  EXPECT_NE(primitive_library_version(DType::bf16), primitive_library_version());
  EXPECT_EQ(primitive_library_version(DType::f16), primitive_library_version());
  EXPECT_EQ(dense->widened(), "");
  EXPECT_EQ(make(DenseSpec{.n = 4, .in = 16, .out = 16}, Float16{})->widened(),
            "this processor cannot multiply float16");
  EXPECT_NE(make(convolution(1, 4, 4, 3, 16, 3, 1, 1), BFloat16{})->widened().find("unreliable"),
            std::string_view::npos);
#else
  GTEST_SKIP() << "not x86-64";
#endif
}

TYPED_TEST(LinearHalf, ActivationsOfAWrongTypeAreABug) {
  using T = TypeParam;
  const DenseSpec d{.n = 16, .in = 16, .out = 16};
  const Stored<T> narrow(256);
  const Floats wide(256);
  for (const auto& primitive : {make(d, T{}), make(convolution(1, 4, 4, 16, 16, 1, 1, 0), T{})}) {
    const TestLane lane(primitive->scratch_bytes());
    const Buffer packed(cpu_device(), primitive->packed_bytes());
    primitive->pack(lane, wide.data(), packed.data());
    EXPECT_THROW(primitive->forward(lane, wide.data(), nullptr, packed.data(), nullptr, narrow.data()),
                 Error);
    EXPECT_THROW(primitive->forward(lane, narrow.data(), nullptr, packed.data(), nullptr, wide.data()),
                 Error);
    EXPECT_THROW(primitive->backward_data(lane, wide.data(), nullptr, packed.data(), narrow.data()), Error);
    EXPECT_THROW(primitive->backward_data(lane, narrow.data(), nullptr, packed.data(), wide.data()), Error);
    EXPECT_THROW(primitive->backward_weights(lane, wide.data(), narrow.data(), wide.data()), Error);
    EXPECT_THROW(primitive->backward_weights(lane, narrow.data(), wide.data(), wide.data()), Error);
  }
}

}  // namespace
}  // namespace lockstep
