// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Norms with 16-bit activations on a GPU. Element-wise results have the CPU's bits. Sums and statistics have
// the bits of the GPU's float32 kernels on the same numbers; their other results are rounded once.
#include "kernels/group_norm.h"
#include "kernels/norm.h"
#include "unit/kernels/group_norm_testing.h"
#include "unit/kernels/stored_testing.h"
#include "unit/kernels_cuda/cuda_testing.h"

namespace lockstep {
namespace {

template <typename T>
class CudaNormHalf : public GpuTest {};
using Types = testing::Types<BFloat16, Float16>;
TYPED_TEST_SUITE(CudaNormHalf, Types);

/// Numbers of T on the CPU, and on the device in T and in float32.
template <typename T>
struct Numbers {
  Numbers(const Values& values, int shift)
      : host(values), half(host.host(), shift), full(host.widened().values(), shift) {}
  Stored<T> host;
  OnDevice<T> half;
  DeviceFloats full;
};

/// Checks that the device's numbers have the bits of the CPU's (or both are NaN).
template <typename T>
void expect_numbers(const OnDevice<T>& actual, const Stored<T>& expected, const std::string& what) {
  std::vector<float> wide;
  for (const T number : actual.host()) wide.push_back(to_float(number));
  expect_same(wide, host_of(expected.widened()), what);
}
template <typename T>
void expect_rounded_on_device(const OnDevice<T>& actual, const DeviceFloats& exact, const std::string& what) {
  expect_numbers(actual, Stored<T>(exact.values()), what);
}

TYPED_TEST(CudaNormHalf, MomentsAreThoseOfFloat32) {
  for (const Size size : kSizes)
    for (const int shift : {0, 1}) {
      const CudaLane lane;
      const Numbers<TypeParam> x(random_values(size.rows * size.channels, 1, -2.0, 3.0), shift);
      const DeviceDoubles leaf(1 + 2 * size.channels), expected(1 + 2 * size.channels);
      gpu().norm.moments(lane, size.rows, size.channels, x.half.data(), leaf.data());
      gpu().norm.moments(lane, size.rows, size.channels, x.full.data(), expected.data());
      expect_same(leaf.host(), expected.host(), describe(size));
    }
}

TYPED_TEST(CudaNormHalf, NormalizeHasTheBitsOfTheCpu) {
  for (const Size size : kSizes)
    for (const bool relu : {false, true})
      for (const bool add : {false, true})
        for (const int shift : {0, 1}) {
          const std::int64_t count = size.rows * size.channels;
          Values values = random_values(count, 10);
          if (count > 20) values[17] = std::nan("");
          const Numbers<TypeParam> x(values, shift), r(random_values(count, 11), shift);
          const Floats a(random_values(size.channels, 12)), b(random_values(size.channels, 13)),
              m(random_values(size.channels, 14));
          const DeviceFloats da(a.values(), shift), db(b.values(), shift), dm(m.values(), shift);
          const Stored<TypeParam> expected(count);
          const CudaLane lane;
          cpu_kernels().norm.normalize(TestLane(), size.rows, size.channels, x.host.data(), m.data(),
                                       a.data(), b.data(), add ? ConstData(r.host.data()) : ConstData(), relu,
                                       expected.data());
          gpu().norm.normalize(lane, size.rows, size.channels, x.half.data(), dm.data(), da.data(), db.data(),
                               add ? ConstData(r.half.data()) : ConstData(), relu,
                               x.half.data());  // in place
          expect_numbers(x.half, expected, describe(size));
        }
}

struct Case {
  bool second, write, relu, mask_from_x;
};

template <typename T>
void check_backward(Size size, Case option, int shift) {
  const std::string what = fmt::format("{} dy2 {} g_out {} relu {} from x {} shift {}", describe(size),
                                       option.second, option.write, option.relu, option.mask_from_x, shift);
  const std::int64_t count = size.rows * size.channels;
  const Numbers<T> x(random_values(count, 21, -1.0, 2.0), shift), dy(random_values(count, 22), shift),
      dy2(random_values(count, 23), shift), y(random_values(count, 24), shift);
  const auto per_channel = [&](std::uint32_t stream) {
    return DeviceFloats(random_values(size.channels, stream));
  };
  const DeviceFloats mean = per_channel(25), inverse = per_channel(26), scale = per_channel(27),
                     offset = per_channel(28), a = per_channel(29), b = per_channel(30), d = per_channel(31);
  const auto gradient = [&](bool half) {
    const auto of = [&](const Numbers<T>& numbers) {
      return half ? ConstData(numbers.half.data()) : ConstData(numbers.full.data());
    };
    return NormKernels::Gradient{.dy = of(dy),
                                 .dy2 = option.second ? of(dy2) : ConstData(),
                                 .y = option.relu && !option.mask_from_x ? of(y) : ConstData(),
                                 .mask_from_x = option.mask_from_x,
                                 .x = of(x),
                                 .scale = scale.data(),
                                 .shift = offset.data(),
                                 .mean = mean.data(),
                                 .inverse_std = inverse.data()};
  };
  const CudaLane lane;
  const OnDevice<T> g(count, shift);
  const DeviceFloats full_g(count, shift), full_dx(count, shift);
  const DeviceDoubles sum_g(size.channels), sum_gx(size.channels), full_sum_g(size.channels),
      full_sum_gx(size.channels);
  gpu().norm.backward_sums(lane, size.rows, size.channels, gradient(true),
                           option.write ? Data(g.data()) : Data(), sum_g.data(), sum_gx.data());
  gpu().norm.backward_sums(lane, size.rows, size.channels, gradient(false),
                           option.write ? full_g.data() : nullptr, full_sum_g.data(), full_sum_gx.data());
  expect_same(sum_g.host(), full_sum_g.host(), "sum g " + what);
  expect_same(sum_gx.host(), full_sum_gx.host(), "sum gx " + what);
  if (option.write) expect_rounded_on_device(g, full_g, "g " + what);
  gpu().norm.backward_apply(lane, size.rows, size.channels, gradient(true), a.data(), b.data(), d.data(),
                            dy.half.data());
  gpu().norm.backward_apply(lane, size.rows, size.channels, gradient(false), a.data(), b.data(), d.data(),
                            full_dx.data());
  expect_rounded_on_device(dy.half, full_dx, "dx over dy, " + what);
}

TYPED_TEST(CudaNormHalf, BackwardIsFloat32RoundedOnceAndSumsAreNotRounded) {
  for (const Size size : kSizes)
    for (const bool second : {false, true})
      for (const bool write : {false, true})
        for (const int shift : {0, 1}) {
          check_backward<TypeParam>(size, {second, write, false, false}, shift);
          check_backward<TypeParam>(size, {second, write, true, false}, shift);
          check_backward<TypeParam>(size, {second, write, true, true}, shift);
        }
}

/// Also where y is a small positive number that was rounded to zero.
TYPED_TEST(CudaNormHalf, TheMaskFromXMatchesTheStoredOutput) {
  const double least = dtype_of<TypeParam> == DType::bf16 ? 0x1p-133 : 0x1p-24;
  const std::int64_t channels = 8, rows = 5;
  Values x, expected;
  for (const double sample : {least, 3 * least, -least, 0.0, 1.0})
    x.insert(x.end(), static_cast<std::size_t>(channels), sample);
  const Values scale{0.5, 0.51, 0.49, 0.25, 1.0, -0.51, 1.5, 0.0};
  const CudaLane lane;
  const Numbers<TypeParam> xs(x, 0), dy(Values(x.size(), 1.0), 0);
  const OnDevice<TypeParam> y(rows * channels), g(rows * channels);
  const DeviceFloats scales(scale), zeros(Values(scale.size(), 0.0)), ones(Values(scale.size(), 1.0));
  const DeviceDoubles sum_g(channels), sum_gx(channels);
  gpu().norm.normalize(lane, rows, channels, xs.half.data(), zeros.data(), scales.data(), zeros.data(),
                       nullptr, true, y.data());
  int rounded_to_zero = 0;
  const std::vector<TypeParam> stored = y.host();
  for (std::size_t i = 0; i < x.size(); ++i) {
    expected.push_back(to_float(stored[i]) > 0.0F ? 1.0 : 0.0);
    rounded_to_zero += x[i] * scale[i % scale.size()] > 0.0 && expected[i] == 0.0;
  }
  EXPECT_GE(rounded_to_zero, 3) << "the test needs such numbers";
  NormKernels::Gradient gradient;
  gradient.x = xs.half.data();
  gradient.dy = dy.half.data();
  gradient.mean = zeros.data();
  gradient.inverse_std = ones.data();
  gradient.mask_from_x = true;
  gradient.scale = scales.data();
  gradient.shift = zeros.data();
  gpu().norm.backward_sums(lane, rows, channels, gradient, g.data(), sum_g.data(), sum_gx.data());
  expect_numbers(g, Stored<TypeParam>(expected), "g");
}

TYPED_TEST(CudaNormHalf, GroupNormIsFloat32RoundedOnce) {
  for (const GroupNormShape& s : all_norm_shapes())
    for (const int shift : {0, 1, 4}) {  // 4: aligned to 8 bytes, as packs of four require
      const std::string what = to_string(s);
      const std::int64_t count = s.samples * s.positions * s.channels(), groups = 2 * s.samples * s.groups;
      const Numbers<TypeParam> x(random_values(count, 1, -1.0, 3.0), shift),
          dy(random_values(count, 2), shift);
      const DeviceFloats gamma(random_values(s.channels(), 3)), beta(random_values(s.channels(), 4));
      const OnDevice<TypeParam> y(count, shift), dx(count, shift);
      const DeviceFloats full_y(count), full_dx(count);
      const DeviceFloats statistics(groups), full_statistics(groups), dgamma(s.channels()),
          full_dgamma(s.channels()), dbeta(s.channels()), full_dbeta(s.channels());
      const CudaLane lane(gpu().group_norm.scratch_bytes(s));
      const GroupNormKernels& k = gpu().group_norm;
      k.forward(lane, s, x.half.data(), 1e-3, gamma.data(), beta.data(), statistics.data(), y.data());
      k.forward(lane, s, x.full.data(), 1e-3, gamma.data(), beta.data(), full_statistics.data(),
                full_y.data());
      k.backward(lane, s, x.half.data(), dy.half.data(), gamma.data(), statistics.data(), dx.data(),
                 dgamma.data(), dbeta.data());
      k.backward(lane, s, x.full.data(), dy.full.data(), gamma.data(), full_statistics.data(), full_dx.data(),
                 full_dgamma.data(), full_dbeta.data());
      expect_rounded_on_device(y, full_y, "y " + what);
      expect_rounded_on_device(dx, full_dx, "dx " + what);
      expect_same(statistics.host(), full_statistics.host(), "statistics " + what);
      expect_same(dgamma.host(), full_dgamma.host(), "dgamma " + what);
      expect_same(dbeta.host(), full_dbeta.host(), "dbeta " + what);
    }
}

TYPED_TEST(CudaNormHalf, L2NormalizeIsFloat32RoundedOnce) {
  for (const std::int64_t rows : {0, 1, 7})
    for (const std::int64_t channels : {1, 3, 17, 64, 132, 1500}) {
      const std::int64_t count = rows * channels;
      const int shift = rows == 7 ? 0 : 1;
      const Numbers<TypeParam> x(random_values(count, 1), shift), y(random_values(count, 2), shift),
          dy(random_values(count, 3), shift);
      const OnDevice<TypeParam> to(count, shift), dx(count, shift);
      const DeviceFloats full_to(count), full_dx(count), kept(2 * rows), full_kept(2 * rows);
      const CudaLane lane;
      const GroupNormKernels& k = gpu().group_norm;
      k.l2_normalize(lane, rows, channels, x.half.data(), 1e-3, kept.data(), to.data());
      k.l2_normalize(lane, rows, channels, x.full.data(), 1e-3, full_kept.data(), full_to.data());
      k.l2_normalize_backward(lane, rows, channels, y.half.data(), dy.half.data(), kept.data(), dx.data());
      k.l2_normalize_backward(lane, rows, channels, y.full.data(), dy.full.data(), kept.data(),
                              full_dx.data());
      expect_rounded_on_device(to, full_to, "y");
      expect_rounded_on_device(dx, full_dx, "dx");
      expect_same(kept.host(), full_kept.host(), "kept");
    }
}

}  // namespace
}  // namespace lockstep
