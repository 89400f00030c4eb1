// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Shared parts of the tests of 16-bit primitives on the CPU: running a primitive, numbers with exact results,
// and the exact results.
#pragma once

#include <gtest/gtest.h>

#include "kernels/kernel_table.h"
#include "unit/kernels/linear_testing.h"
#include "unit/kernels/stored_testing.h"

namespace lockstep {

/// Largest relative error of a rounding to T: bfloat16 has 8 significant bits, float16 has 11.
template <typename T>
inline constexpr double kRoundingTo = dtype_of<T> == DType::bf16 ? 0x1p-8 : 0x1p-11;

template <typename Spec, typename T>
std::unique_ptr<LinearPrimitive> make(Spec s, T, int lanes = 1) {
  s.dtype = dtype_of<T>;
  if constexpr (std::is_same_v<Spec, ConvolutionSpec>)
    return cpu_kernels().make.convolution(s, lanes);
  else
    return cpu_kernels().make.dense(s, lanes);
}

/// The results that a primitive computes from x, dy, weights and bias. Scratch and pack are filled with NaN
/// before.
template <typename T>
struct Results {
  Stored<T> y, dx;
  Floats dw;
};
inline void fill(void* memory, std::size_t bytes) { std::memset(memory, 0xFF, bytes); }
template <typename T>
Results<T> run(const LinearPrimitive& primitive, const Stored<T>& x, const Stored<T>& dy, const Floats& w,
               const Floats& b, int lane_index = 0, bool training = true) {
  const TestLane lane(primitive.scratch_bytes(), lane_index);
  const Buffer packed(cpu_device(), primitive.packed_bytes());
  const Lane& used = lane;
  fill(used.scratch, used.scratch_bytes);
  fill(packed.data(), packed.size_bytes());
  const auto fill_past_end = [](const Stored<T>& numbers) {  // NaN past the end, to detect reads there
    fill(numbers.data() + numbers.size(), sizeof(T));
  };
  fill_past_end(x);
  fill_past_end(dy);
  Results<T> r{Stored<T>(static_cast<std::int64_t>(dy.size())),
               Stored<T>(static_cast<std::int64_t>(x.size())), Floats(static_cast<std::int64_t>(w.size()))};
  fill(r.y.data(), r.y.size() * sizeof(T));
  fill(r.dx.data(), r.dx.size() * sizeof(T));
  fill(r.dw.data(), r.dw.size() * sizeof(float));
  primitive.pack(lane, w.data(), packed.data());
  fill(used.scratch, used.scratch_bytes);
  primitive.forward(lane, x.data(), nullptr, packed.data(), b.data(), r.y.data());
  if (!training) return r;
  fill(used.scratch, used.scratch_bytes);
  primitive.backward_data(lane, dy.data(), nullptr, packed.data(), r.dx.data());
  fill(used.scratch, used.scratch_bytes);
  primitive.backward_weights(lane, x.data(), dy.data(), r.dw.data());
  return r;
}

template <typename T>
Values rounded(Values values) {
  for (double& value : values) value = to_float(from_float<T>(static_cast<float>(value)));
  return values;
}

/// Whole numbers from -3 to 3: all sums of their products are exact in float32, in any order.
inline Values whole_numbers(std::int64_t count, std::uint32_t stream) {
  Values values = random_values(count, stream, -3.5, 3.5);
  for (double& value : values) value = std::round(value);
  return values;
}
/// Numbers that T cannot represent and that round to those whole numbers in T.
template <typename T>
Values almost(Values values) {
  for (double& value : values) value *= 1.0 + kRoundingTo<T> / 2.0;
  return values;
}

inline void expect_equal(const Floats& actual, const Values& expected, const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  for (std::size_t i = 0; i < expected.size(); ++i)
    ASSERT_EQ(static_cast<double>(actual[i]), expected[i]) << what << ", element " << i;
}

/// Checks the results of one primitive against `exact` ones; x, dy and weights are numbers of T.
struct Exact {
  Values y, dx, dw;
};

template <typename T>
void expect_exact(const Results<T>& r, const Exact& exact, const std::string& what) {
  expect_rounded(r.y, Floats(exact.y), "y " + what);
  expect_rounded(r.dx, Floats(exact.dx), "dx " + what);
  expect_equal(r.dw, exact.dw, "dw " + what);
}

inline Exact exact_of(const ConvolutionSpec& s, const Values& x, const Values& dy, const Values& w,
                      const Values& b) {
  return {reference::convolution(s, x, w, s.bias ? b : Values{}),
          reference::convolution_backward_data(s, dy, w), reference::convolution_backward_weights(s, x, dy)};
}
inline Exact exact_of(const DenseSpec& s, const Values& x, const Values& dy, const Values& w,
                      const Values& b) {
  return {reference::dense(s, x, w, s.bias ? b : Values{}), reference::dense_backward_data(s, dy, w),
          reference::dense_backward_weights(s, x, dy)};
}
inline std::int64_t x_count(const DenseSpec& s) { return s.n * s.in; }
inline std::int64_t y_count(const DenseSpec& s) { return s.n * s.out; }
inline std::int64_t w_count(const DenseSpec& s) { return s.in * s.out; }
inline std::int64_t channels_of(const ConvolutionSpec& s) { return s.out_c; }
inline std::int64_t channels_of(const DenseSpec& s) { return s.out; }
/// Number of products in an element of y, dx and dw.
struct Lengths {
  std::int64_t y, dx, dw;
};
inline Lengths lengths_of(const ConvolutionSpec& s) {
  return {s.kernel_rows(), s.kernel_d * s.kernel_h * s.kernel_w * s.out_c / s.groups,
          s.n * s.out_positions()};
}
inline Lengths lengths_of(const DenseSpec& s) { return {s.in, s.out, s.n}; }
inline std::string describe(const DenseSpec& s) {
  return fmt::format("{}x{}x{} bias {} relu {} packed {}", s.n, s.in, s.out, s.bias, s.relu, s.packed);
}

/// With and without bias and relu.
template <typename Spec>
std::vector<Spec> variants(const std::vector<Spec>& specs) {
  std::vector<Spec> all;
  for (Spec s : specs)
    for (auto [bias, relu] : {std::pair{false, false}, {true, false}, {true, true}, {false, true}}) {
      s.bias = bias, s.relu = relu;
      all.push_back(s);
    }
  return all;
}

}  // namespace lockstep
