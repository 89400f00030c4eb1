// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Element-wise kernels in the 16-bit types on a GPU, compared with the CPU's in the same type.
#include "kernels/elementwise.h"

#include "unit/kernels_cuda/stored_cuda_testing.h"

namespace lockstep {
namespace {

template <typename T>
class CudaElementwiseHalf : public GpuTest {};
using Types = testing::Types<BFloat16, Float16>;
TYPED_TEST_SUITE(CudaElementwiseHalf, Types);

/// Random numbers with NaN, infinities and zeros of both signs.
Values special_values(std::int64_t count, std::uint32_t stream) {
  Values values = random_values(count, stream);
  const double special[] = {std::nan(""), INFINITY, -INFINITY, 0.0, -0.0};
  for (std::size_t i = 0; i < values.size(); i += 11) values[i] = special[i / 11 % 5];
  return values;
}

TYPED_TEST(CudaElementwiseHalf, MapsHaveTheBitsOfTheCpu) {
  using K = const ElementwiseKernels&;
  for (std::int64_t count : {0, 1, 3, 17, 256, 1023, 4100})
    for (int shift : {0, 1}) {
      const Stored<TypeParam> a(special_values(count, 1)), b(special_values(count, 2));
      const OnDevice<TypeParam> da = on_device(a, shift), db = on_device(b, shift);
      const Floats bias(random_values(count, 3));
      const DeviceFloats device_bias(bias.values());
      const CudaLane cuda_lane;
      const auto compare = [&](const char* name, const auto& run) {
        Stored<TypeParam> expected(a.values());
        const OnDevice<TypeParam> actual = on_device(expected, shift);
        run(cpu_kernels().elementwise, TestLane(), ConstData(a.data()), ConstData(b.data()),
            Data(expected.data()), bias.data());
        run(gpu().elementwise, cuda_lane, ConstData(da.data()), ConstData(db.data()), Data(actual.data()),
            device_bias.data());
        expect_same(actual, expected, fmt::format("{} {} shift {}", name, count, shift));
      };
      using L = const Lane&;
      using C = ConstData;
      using B = const float*;
      compare("add", [=](K k, L l, C x, C z, Data y, B) { k.add(l, count, x, z, y, false); });
      compare("add and relu", [=](K k, L l, C x, C z, Data y, B) { k.add(l, count, x, z, y, true); });
      compare("accumulate", [=](K k, L l, C, C z, Data y, B) { k.accumulate(l, count, y, z); });
      compare("scale", [=](K k, L l, C x, C, Data y, B) { k.scale(l, count, 0.3F, x, y); });
      compare("relu", [=](K k, L l, C x, C, Data y, B) { k.relu(l, count, x, y); });
      compare("relu backward", [=](K k, L l, C x, C z, Data y, B) { k.relu_backward(l, count, x, z, y); });
      compare("zero", [=](K k, L l, C, C, Data y, B) { k.zero(l, count, y); });
      for (const bool relu : {false, true})
        for (const std::int64_t channels : {3, 4})
          compare("add bias", [=](K k, L l, C, C, Data y, B added) {
            k.add_bias(l, count / channels, std::min(channels, count), added, y, relu);
          });
    }
}

/// The sums use the widened numbers, so they have the bits of the float32 kernel.
TYPED_TEST(CudaElementwiseHalf, RowSumsHaveTheBitsOfFloat32) {
  for (Size size : kSizes)
    for (bool masked : {false, true})
      for (int shift : {0, 1, 4}) {
        const std::string what = fmt::format("{} shift {}", describe(size), shift);
        const std::int64_t count = size.rows * size.channels;
        const Stored<TypeParam> dy(random_values(count, 3)), y(random_values(count, 4));
        const DeviceFloats wide_dy(dy.values()), wide_y(y.values()), wide_g(count), wide_sums(size.channels);
        const OnDevice<TypeParam> half_dy = on_device(dy, shift), half_y = on_device(y, shift),
                                  g(count, shift);
        const DeviceFloats sums(size.channels), alone(size.channels);
        const CudaLane lane;
        const auto run = [&](ConstData gradient, ConstData output, Data written, const DeviceFloats& result) {
          gpu().elementwise.mask_and_sum_rows(lane, size.rows, size.channels, gradient,
                                              masked ? output : nullptr, written, result.data());
        };
        run(wide_dy.data(), wide_y.data(), wide_g.data(), wide_sums);
        run(half_dy.data(), half_y.data(), g.data(), sums);
        run(half_dy.data(), half_y.data(), nullptr, alone);
        expect_same(sums.host(), wide_sums.host(), what);
        expect_same(alone.host(), wide_sums.host(), what);
        expect_same(widened(g.host()), wide_g.host(), "g " + what);
      }
}

TYPED_TEST(CudaElementwiseHalf, GlobalAveragesMatchTheCpu) {
  for (std::int64_t n : {0, 1, 5})
    for (std::int64_t positions : {1, 3, 49, 700})
      for (std::int64_t channels : {1, 3, 64, 130})
        for (int shift : {0, 1}) {
          const std::string what = fmt::format("{}x{}x{} shift {}", n, positions, channels, shift);
          const Stored<TypeParam> x(random_values(n * positions * channels, 5)),
              dy(random_values(n * channels, 6));
          const Floats wide_x = x.widened(), wide_y(n * channels);
          const Stored<TypeParam> dx(n * positions * channels);
          const ElementwiseKernels& cpu = cpu_kernels().elementwise;
          cpu.global_average(TestLane(), n, positions, channels, wide_x.data(), wide_y.data());
          cpu.global_average_backward(TestLane(), n, positions, channels, dy.data(), dx.data());
          const OnDevice<TypeParam> gx = on_device(x, shift), gdy = on_device(dy, shift),
                                    y(n * channels, shift), back(n * positions * channels, shift);
          const CudaLane lane;
          gpu().elementwise.global_average(lane, n, positions, channels, gx.data(), y.data());
          gpu().elementwise.global_average_backward(lane, n, positions, channels, gdy.data(), back.data());
          // The numbers are at most 1; 66 roundings on each side.
          expect_near_rounded(y, wide_y, 132 * kRounding, "average " + what);
          expect_same(back, dx, "its gradient " + what);
        }
}

TYPED_TEST(CudaElementwiseHalf, DropoutAndNoiseHaveTheBitsOfTheCpu) {
  for (std::int64_t n : {0, 1, 5})
    for (std::int64_t features : {1, 4, 7, 64, 65, 300})
      for (int shift : {0, 1}) {
        const Stored<TypeParam> x(random_values(n * features, 7, 0.5, 1.0));
        const Stored<TypeParam> dropped(n * features), noisy(n * features);
        const OnDevice<TypeParam> dx = on_device(x, shift), ddropped(n * features, shift),
                                  dnoisy(n * features, shift);
        const auto run = [&](const ElementwiseKernels& k, const Lane& lane, ConstData from, Data y, Data z) {
          k.dropout(lane, n, features, from, 0.25F, 0x123456789ABCDEFULL, 9, 41, 1000, y);
          k.gaussian_noise(lane, n, features, from, 0.3F, 0x123456789ABCDEFULL, 9, 41, 1000, z);
        };
        run(cpu_kernels().elementwise, TestLane(), x.data(), dropped.data(), noisy.data());
        run(gpu().elementwise, CudaLane(), dx.data(), ddropped.data(), dnoisy.data());
        const std::string what = fmt::format("{}x{} shift {}", n, features, shift);
        expect_same(ddropped, dropped, "dropout " + what);
        expect_same(dnoisy, noisy, "noise " + what);
      }
}

/// Nodes of a compressed sum.
class CudaElementwiseRounded : public GpuTest {};

TEST_F(CudaElementwiseRounded, SumsOfNodesHaveTheBitsOfTheCpu) {
  for (std::int64_t count : {0, 1, 3, 17, 256, 1023, 4100})
    for (int shift : {0, 1}) {
      const std::string what = fmt::format("{} shift {}", count, shift);
      const Stored<float> a(special_values(count, 1)), b(special_values(count, 2));
      const Stored<BFloat16> half(b.values());
      const OnDevice<float> device_b = on_device(b, shift);
      const OnDevice<BFloat16> device_half = on_device(half, shift);
      const auto compare = [&](const std::string& name, const auto& cpu, const auto& device) {
        const Stored<float> expected(a.values());
        const OnDevice<float> actual = on_device(expected, shift);
        cpu(expected.data());
        device(actual.data());
        expect_same(actual, expected, name + " " + what);
      };
      const ElementwiseKernels &on_cpu = cpu_kernels().elementwise, &on_gpu = gpu().elementwise;
      const CudaLane lane;
      compare(
          "round", [&](float* y) { on_cpu.round_to_bfloat16(TestLane(), count, y); },
          [&](float* y) { on_gpu.round_to_bfloat16(lane, count, y); });
      for (const bool total : {false, true}) {
        compare(
            "floats", [&](float* y) { on_cpu.accumulate_rounded(TestLane(), count, y, b.data(), total); },
            [&](float* y) { on_gpu.accumulate_rounded(lane, count, y, device_b.data(), total); });
        compare(
            "halves", [&](float* y) { on_cpu.accumulate_rounded(TestLane(), count, y, half.data(), total); },
            [&](float* y) { on_gpu.accumulate_rounded(lane, count, y, device_half.data(), total); });
      }
    }
}

}  // namespace
}  // namespace lockstep
