// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Dense layers and convolutions with 16-bit activations on a GPU. The note on the emulated GPU in
// linear_cuda_test.cpp applies here too.
#include <algorithm>

#include "kernels/linear_cuda.h"
#include "kernels/transposed_convolution.h"
#include "kernels/widened_linear.h"
#include "unit/kernels/linear_testing.h"
#include "unit/kernels/stored_testing.h"
#include "unit/kernels_cuda/cuda_testing.h"

namespace lockstep {
namespace {

template <typename T>
class CudaLinearHalf : public GpuTest {};
using Types = testing::Types<BFloat16, Float16>;
struct TypeNames {
  template <typename T>
  static std::string GetName(int) {
    return std::string(name_of(dtype_of<T>));
  }
};
TYPED_TEST_SUITE(CudaLinearHalf, Types, TypeNames);

/// Largest relative error of a rounding to T: bfloat16 has 8 significant bits, float16 has 11.
template <typename T>
constexpr double kRoundingTo = dtype_of<T> == DType::bf16 ? 0x1p-8 : 0x1p-11;

template <typename T>
std::vector<T> narrow(const Values& values) {
  std::vector<T> narrowed;
  for (double value : values) narrowed.push_back(from_float<T>(static_cast<float>(value)));
  return narrowed;
}
template <typename T>
Values widen(const std::vector<T>& numbers) {
  Values values;
  for (T number : numbers) values.push_back(static_cast<double>(to_float(number)));
  return values;
}
template <typename T>
Values rounded(const Values& values) {
  return widen(narrow<T>(values));
}
Values whole_numbers(std::int64_t count, std::uint32_t stream) {
  Values values = random_values(count, stream, -3.5, 3.5);
  for (double& value : values) value = std::round(value);
  return values;
}

struct Operands {
  Values x, dy, w, b;
};
struct Results {
  Values y, dx, dw;
};
template <typename T>
Results run(const LinearPrimitive& primitive, const Operands& o) {
  const CudaLane lane(primitive.scratch_bytes());
  const OnDevice<unsigned char> packed(static_cast<std::int64_t>(primitive.packed_bytes()));
  const OnDevice<T> x(narrow<T>(o.x)), dy(narrow<T>(o.dy)), y(static_cast<std::int64_t>(o.dy.size())),
      dx(static_cast<std::int64_t>(o.x.size()));
  const DeviceFloats w(o.w), b(o.b), dw(static_cast<std::int64_t>(o.w.size()));
  primitive.pack(lane, w.data(), packed.data());
  primitive.forward(lane, x.data(), nullptr, packed.data(), b.data(), y.data());
  primitive.backward_data(lane, dy.data(), nullptr, packed.data(), dx.data());
  primitive.backward_weights(lane, x.data(), dy.data(), dw.data());
  return {widen(y.host()), widen(dx.host()), dw.values()};
}

std::vector<ConvolutionSpec> convolutions() {
  return {convolution(2, 8, 8, 16, 16, 3, 1, 1),
          convolution(3, 9, 7, 3, 16, 3, 1, 1),
          convolution(2, 16, 16, 16, 32, 3, 2, 1),
          convolution(2, 9, 9, 16, 32, 1, 2, 0),
          convolution(1, 6, 6, 17, 33, 3, 2, 1),
          convolution(2, 10, 10, 16, 16, 3, 1, 2, 1, 2),
          convolution(2, 8, 8, 16, 32, 3, 1, 1, 4),
          convolution(1, 9, 9, 6, 6, 3, 2, 1, 6),
          asymmetric(2, 16, 16),
          asymmetric(1, 3, 5),
          volume(2, 16, 16, 1),
          volume(1, 6, 9, 1, 3)};
}
std::vector<DenseSpec> products() {
  std::vector<DenseSpec> specs;
  for (auto [n, in, out] : std::vector<std::array<std::int64_t, 3>>{
           {1, 1, 1}, {3, 17, 5}, {32, 64, 10}, {130, 33, 70}, {7, 300, 128}})
    specs.push_back({.n = n, .in = in, .out = out});
  return specs;
}

std::unique_ptr<LinearPrimitive> make(const PrimitiveFactory& factory, const ConvolutionSpec& s) {
  return factory.convolution(s, 1);
}
std::unique_ptr<LinearPrimitive> make(const PrimitiveFactory& factory, const DenseSpec& s) {
  return factory.dense(s, 1);
}
Results exact_of(const ConvolutionSpec& s, const Operands& o) {
  return {reference::convolution(s, o.x, o.w, {}), reference::convolution_backward_data(s, o.dy, o.w),
          reference::convolution_backward_weights(s, o.x, o.dy)};
}
Results exact_of(const DenseSpec& s, const Operands& o) {
  return {reference::dense(s, o.x, o.w, {}), reference::dense_backward_data(s, o.dy, o.w),
          reference::dense_backward_weights(s, o.x, o.dy)};
}
std::string describe_all(const ConvolutionSpec& s) { return describe(s); }
std::string describe_all(const DenseSpec& s) {
  return fmt::format("{}x{}x{} bias {} relu {}", s.n, s.in, s.out, s.bias, s.relu);
}
/// Number of products in an element of y, dx and dw.
std::array<std::int64_t, 3> lengths_of(const ConvolutionSpec& s) {
  return {s.kernel_rows(), s.kernel_d * s.kernel_h * s.kernel_w * s.out_c / s.groups,
          s.n * s.out_positions()};
}
std::array<std::int64_t, 3> lengths_of(const DenseSpec& s) { return {s.in, s.out, s.n}; }
std::int64_t channels_of(const ConvolutionSpec& s) { return s.out_c; }
std::int64_t channels_of(const DenseSpec& s) { return s.out; }

template <typename T>
Values with_bias_at_once(Values product, const Values& b, bool bias, bool relu) {
  for (std::size_t i = 0; i < product.size(); ++i) {
    if (bias) product[i] += b[i % b.size()];
    if (relu) product[i] = std::max(product[i], 0.0);
  }
  return rounded<T>(product);
}

/// For convolutions and transposed convolutions: the library rounds the product; bias and relu are applied
/// afterwards, and round again.
template <typename T>
Values with_bias(Values product, const Values& b, bool bias, bool relu) {
  product = rounded<T>(product);
  return with_bias_at_once<T>(std::move(product), b, bias, relu);
}

template <typename T>
Values expected_y(const ConvolutionSpec& s, Values product, const Values& b) {
  return with_bias<T>(std::move(product), b, s.bias, s.relu);
}
/// For dense layers: the bias is rounded like the weights; the sum with it is rounded once.
template <typename T>
Values expected_y(const DenseSpec& s, Values product, const Values& b) {
  return with_bias_at_once<T>(std::move(product), rounded<T>(b), s.bias, s.relu);
}

template <typename T, typename Spec>
void check(Spec s) {
  s.dtype = dtype_of<T>;
  const LinearSizes sizes = sizes_of(s);
  const Operands whole{whole_numbers(sizes.x, 1), whole_numbers(sizes.y, 2), whole_numbers(sizes.weights, 3),
                       whole_numbers(channels_of(s), 4)};
  Operands fine = whole;  // weights that round to integers, and a bias that rounds to another integer
  for (double& value : fine.w) value *= 1.0 + kRoundingTo<T> / 2.0;
  for (double& value : fine.b) value += 0.0625 + 0x1p-14;
  for (auto [bias, relu] : {std::pair{false, false}, {true, false}, {true, true}, {false, true}}) {
    s.bias = bias, s.relu = relu;
    const std::string what = describe_all(s);
    Spec linear = s;
    linear.bias = linear.relu = false;
    const auto primitive = make(gpu().make, s);
    const Results r = run<T>(*primitive, fine), exact = exact_of(linear, whole);
    EXPECT_EQ(r.y, expected_y<T>(s, exact.y, fine.b)) << what;
    EXPECT_EQ(r.dx, rounded<T>(exact.dx)) << what;
    // cuDNN may return the weight gradient in T.
    EXPECT_TRUE(r.dw == exact.dw || r.dw == rounded<T>(exact.dw)) << what;

    const Operands random{rounded<T>(random_values(sizes.x, 1)), rounded<T>(random_values(sizes.y, 2)),
                          random_values(sizes.weights, 3), random_values(channels_of(s), 4)};
    Operands narrowed = random, magnitudes = random;
    narrowed.w = rounded<T>(random.w);
    for (Values* values : {&magnitudes.x, &magnitudes.dy, &magnitudes.w, &magnitudes.b})
      *values = absolute(std::move(*values));
    const Results got = run<T>(*primitive, random), again = run<T>(*make(gpu().make, s), random),
                  expected = exact_of(linear, narrowed);
    Results magnitude = exact_of(linear, magnitudes);
    EXPECT_EQ(got.y, again.y) << what;
    EXPECT_EQ(got.dx, again.dx) << what;
    EXPECT_EQ(got.dw, again.dw) << what;
    // Tensor cores truncate where float32 rounds: twice the error of a sum. Then a rounding to T. y has one
    // more rounding: of the bias, or of the result after the bias.
    const std::array<std::int64_t, 3> length = lengths_of(s);
    const auto sum = [&](std::size_t i) { return 2.0 * dot_error(length[i]); };
    constexpr double kStored = kRoundingTo<T> * 1.01, kLeast = dtype_of<T> == DType::f16 ? 0x1p-24 : 0x1p-125;
    Values y = expected.y;
    for (std::size_t i = 0; i < y.size(); ++i) {
      const double added = bias ? random.b[i % random.b.size()] : 0.0;
      y[i] = relu ? std::max(y[i] + added, 0.0) : y[i] + added;
      magnitude.y[i] += std::abs(added);
    }
    // A weight rounded to T exceeds its magnitude by at most one rounding.
    const double rounding_up = 1.0 + kRoundingTo<T>;
    expect_close(got.y, y, magnitude.y, (sum(0) + 2.0 * kStored) * rounding_up, kLeast, "y " + what);
    expect_close(got.dx, expected.dx, magnitude.dx, (sum(1) + kStored) * rounding_up, kLeast, "dx " + what);
    const bool narrow_gradient = got.dw == rounded<T>(got.dw);
    expect_close(got.dw, expected.dw, magnitude.dw, sum(2) + (narrow_gradient ? kStored : 0.0), kLeast,
                 "dw " + what);
  }
}

TYPED_TEST(CudaLinearHalf, ConvolutionsMatchTheReference) {
  for (const ConvolutionSpec& s : convolutions()) check<TypeParam>(s);
}
TYPED_TEST(CudaLinearHalf, DenseProductsMatchTheReference) {
  for (const DenseSpec& s : products()) check<TypeParam>(s);
}

/// Without bias both devices round once.
template <typename T, typename Spec>
void check_against_cpu(Spec s) {
  s.dtype = dtype_of<T>;
  const LinearSizes sizes = sizes_of(s);
  const Values x = whole_numbers(sizes.x, 1), dy = whole_numbers(sizes.y, 2),
               w = whole_numbers(sizes.weights, 3);
  const auto cpu = make(cpu_kernels().make, s);
  const TestLane lane(cpu->scratch_bytes());
  const Buffer packed(cpu_device(), cpu->packed_bytes());
  const Stored<T> from(x), gradient(dy), y(sizes.y), dx(sizes.x);
  const Floats weights(w), dw(sizes.weights);
  cpu->pack(lane, weights.data(), packed.data());
  cpu->forward(lane, from.data(), nullptr, packed.data(), nullptr, y.data());
  cpu->backward_data(lane, gradient.data(), nullptr, packed.data(), dx.data());
  cpu->backward_weights(lane, from.data(), gradient.data(), dw.data());
  const Results r = run<T>(*make(gpu().make, s), {x, dy, w, {}});
  EXPECT_EQ(r.y, y.values()) << describe_all(s);
  EXPECT_EQ(r.dx, dx.values()) << describe_all(s);
  EXPECT_TRUE(r.dw == dw.values() || r.dw == rounded<T>(dw.values())) << describe_all(s);
}
TYPED_TEST(CudaLinearHalf, IntegersHaveTheBitsOfTheCpu) {
  for (const ConvolutionSpec& s : convolutions()) check_against_cpu<TypeParam>(s);
  for (const DenseSpec& s : products()) check_against_cpu<TypeParam>(s);
}

/// The fallback for shapes that the library does not support.
TYPED_TEST(CudaLinearHalf, WidenedProductsMatchTheReference) {
  using T = TypeParam;
  DenseSpec s{.n = 30, .in = 65, .out = 20, .bias = true, .relu = true};
  const auto primitive =
      make_widened_linear(gpu().elementwise, gpu().make.dense(s, 1), dtype_of<T>, sizes_of(s), "a test");
  EXPECT_EQ(primitive->widened(), "a test");
  Operands o{whole_numbers(30 * 65, 1), whole_numbers(30 * 20, 2), whole_numbers(65 * 20, 3),
             whole_numbers(20, 4)};
  const Values y = rounded<T>(reference::dense(s, o.x, o.w, o.b)),
               dx = rounded<T>(reference::dense_backward_data(s, o.dy, o.w)),
               dw = reference::dense_backward_weights(s, o.x, o.dy);
  for (double& value : o.w) value *= 1.0 + kRoundingTo<T> / 2.0;
  const Results r = run<T>(*primitive, o);
  EXPECT_EQ(r.y, y);
  EXPECT_EQ(r.dx, dx);
  EXPECT_EQ(r.dw, dw);
}

TYPED_TEST(CudaLinearHalf, TransposedConvolutionsAreTheDataGradient) {
  using T = TypeParam;
  ConvolutionSpec s = convolution(2, 9, 7, 6, 8, 3, 2, 1);
  s.dtype = dtype_of<T>;
  s.bias = s.relu = true;
  const LinearSizes sizes = sizes_of(s);
  const Operands o{whole_numbers(sizes.y, 1), whole_numbers(sizes.x, 2), whole_numbers(sizes.weights, 3),
                   whole_numbers(s.in_c, 4)};
  const Results r = run<T>(*make_transposed_convolution(gpu(), s, 1), o);
  EXPECT_EQ(r.y, with_bias<T>(reference::convolution_backward_data(s, o.x, o.w), o.b, true, true));
  ConvolutionSpec plain = s;
  plain.relu = false;
  EXPECT_EQ(r.dx, rounded<T>(reference::convolution(plain, o.dy, o.w, {})));
}

TYPED_TEST(CudaLinearHalf, NanPassesThroughProductsBiasAndRelu) {
  using T = TypeParam;
  DenseSpec s{.n = 4, .in = 8, .out = 8, .bias = true, .relu = true, .dtype = dtype_of<T>};
  Operands o{whole_numbers(32, 1), whole_numbers(32, 2), whole_numbers(64, 3), whole_numbers(8, 4)};
  o.x[9] = std::nan("");
  const Results r = run<T>(*gpu().make.dense(s, 1), o);
  for (std::size_t i = 0; i < r.y.size(); ++i) EXPECT_EQ(std::isnan(r.y[i]), i / 8 == 1) << i;
}

TYPED_TEST(CudaLinearHalf, ActivationsOfAWrongTypeAreABug) {
  using T = TypeParam;
  DenseSpec d{.n = 16, .in = 16, .out = 16, .dtype = dtype_of<T>};
  ConvolutionSpec c = convolution(1, 4, 4, 16, 16, 1, 1, 0);
  c.dtype = dtype_of<T>;
  const OnDevice<T> narrow(256);
  const DeviceFloats wide(256);
  for (const auto& primitive : {gpu().make.dense(d, 1), gpu().make.convolution(c, 1)}) {
    const CudaLane lane(primitive->scratch_bytes());
    const OnDevice<unsigned char> packed(static_cast<std::int64_t>(primitive->packed_bytes()));
    EXPECT_THROW(primitive->forward(lane, wide.data(), nullptr, packed.data(), nullptr, narrow.data()),
                 Error);
    EXPECT_THROW(primitive->forward(lane, narrow.data(), nullptr, packed.data(), nullptr, wide.data()),
                 Error);
    EXPECT_THROW(primitive->backward_data(lane, narrow.data(), nullptr, packed.data(), wide.data()), Error);
    EXPECT_THROW(primitive->backward_weights(lane, narrow.data(), wide.data(), wide.data()), Error);
  }
}

TYPED_TEST(CudaLinearHalf, TransposesMoveAndConvertAllNumbers) {
  using T = TypeParam;
  const CudaLane lane(0);
  for (Size size : {Size{1, 1}, Size{3, 17}, Size{33, 32}, Size{100, 70}, Size{5, 4000}}) {
    const std::int64_t count = size.rows * size.channels;
    const Values from = random_values(count, 1);
    Values expected(from.size());
    for (std::int64_t r = 0; r < size.rows; ++r)
      for (std::int64_t c = 0; c < size.channels; ++c)
        expected[static_cast<std::size_t>(c * size.rows + r)] =
            from[static_cast<std::size_t>(r * size.channels + c)];
    const DeviceFloats there(from), back(count);
    const OnDevice<T> turned(count);
    cuda::transpose(lane, size.rows, size.channels, there.data(), turned.data());
    cuda::transpose(lane, size.channels, size.rows, turned.data(), back.data());
    EXPECT_EQ(widen(turned.host()), rounded<T>(expected)) << describe(size);
    EXPECT_EQ(back.values(), rounded<T>(from)) << describe(size);
  }
}

}  // namespace
}  // namespace lockstep
