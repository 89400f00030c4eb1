// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/elementwise.h"

#include "unit/kernels_cuda/cuda_testing.h"

namespace lockstep {
namespace {

class CudaElementwise : public GpuTest {};

const std::vector<std::int64_t> kCounts{0, 1, 3, 17, 256, 1023, 4100};

/// Random numbers with NaN, infinities and zeros of both signs.
Values special_values(std::int64_t count, std::uint32_t stream) {
  Values values = random_values(count, stream);
  const double special[] = {std::nan(""), INFINITY, -INFINITY, 0.0, -0.0};
  for (std::size_t i = 0; i < values.size(); i += 11) values[i] = special[i / 11 % 5];
  return values;
}

TEST_F(CudaElementwise, MapsHaveTheBitsOfTheCpu) {
  for (std::int64_t count : kCounts)
    for (int shift : {0, 1}) {
      const std::string what = fmt::format("{} shift {}", count, shift);
      const Values a = special_values(count, 1), b = special_values(count + 3, 2);
      const Values second(b.begin(), b.begin() + count);
      const Floats ca(a), cb(second);
      const DeviceFloats da(a, shift);
      DeviceFloats db(second, shift);
      const ElementwiseKernels &cpu = cpu_kernels().elementwise, &kernels = gpu().elementwise;
      const CudaLane lane;
      const auto compare = [&](const char* name, const auto& run) {
        Floats expected(count);
        DeviceFloats actual(count, shift);
        run(cpu, TestLane(), ca.data(), cb.data(), expected.data());
        run(kernels, lane, da.data(), db.data(), actual.data());
        expect_same(actual.host(), host_of(expected), fmt::format("{} {}", name, what));
      };
      using K = const ElementwiseKernels&;
      compare("add", [=](K k, const Lane& l, const float* x, const float* z, float* y) {
        k.add(l, count, x, z, y, false);
      });
      compare("add and relu", [=](K k, const Lane& l, const float* x, const float* z, float* y) {
        k.add(l, count, x, z, y, true);
      });
      compare("scale", [=](K k, const Lane& l, const float* x, const float*, float* y) {
        k.scale(l, count, 0.3F, x, y);
      });
      compare("relu",
              [=](K k, const Lane& l, const float* x, const float*, float* y) { k.relu(l, count, x, y); });
      compare("relu backward", [=](K k, const Lane& l, const float* x, const float* z, float* y) {
        k.relu_backward(l, count, x, z, y);
      });
      compare("zero", [=](K k, const Lane& l, const float*, const float*, float* y) { k.zero(l, count, y); });
      // In place.
      const Floats into = ca.copy();
      DeviceFloats device_into(a, shift);
      cpu.accumulate(TestLane(), count, into.data(), cb.data());
      kernels.accumulate(lane, count, device_into.data(), db.data());
      expect_same(device_into.host(), host_of(into), "accumulate " + what);
      cpu.blend(TestLane(), count, into.data(), cb.data(), 0.3F);
      kernels.blend(lane, count, device_into.data(), db.data(), 0.3F);
      expect_same(device_into.host(), host_of(into), "blend " + what);
      kernels.exchange(lane, count, device_into.data(), db.data());
      expect_same(device_into.host(), host_of(cb), "exchange " + what);
      expect_same(db.host(), host_of(into), "exchange " + what);
    }
}

TEST_F(CudaElementwise, RowSumsWithAndWithoutMask) {
  for (Size size : kSizes)
    for (bool masked : {false, true})
      for (bool written : {false, true}) {
        const std::int64_t count = size.rows * size.channels;
        const Values dy = random_values(count, 3), y = random_values(count, 4);
        Values expected(static_cast<std::size_t>(size.channels)), magnitude = expected, g = dy;
        for (std::size_t i = 0; i < dy.size(); ++i) {
          if (masked && !(y[i] > 0.0)) g[i] = 0.0;
          expected[i % expected.size()] += g[i];
          magnitude[i % expected.size()] += std::abs(g[i]);
        }
        std::vector<float> first;
        for (int shift : {0, 0, 1}) {
          const DeviceFloats ddy(dy, shift), dout(y, shift), sums(size.channels, shift), dg(count, shift);
          const CudaLane lane;
          gpu().elementwise.mask_and_sum_rows(lane, size.rows, size.channels, ddy.data(),
                                              masked ? dout.data() : nullptr, written ? dg.data() : nullptr,
                                              sums.data());
          // At most kBlockRows (64) additions in float32 and one rounding of the result.
          expect_close(sums.values(), expected, magnitude, 65 * kRounding, 0.0, describe(size));
          if (written) expect_close(dg.values(), g, g, 0.0, 0.0, "g " + describe(size));
          if (first.empty()) first = sums.host();
          expect_same(sums.host(), first, "again at another address, " + describe(size));
        }
      }
}

TEST_F(CudaElementwise, GlobalAverageAndItsGradient) {
  for (std::int64_t n : {0, 1, 5})
    for (std::int64_t positions : {1, 3, 49, 700})
      for (std::int64_t channels : {1, 3, 64, 130}) {
        const Values x = random_values(n * positions * channels, 5), dy = random_values(n * channels, 6);
        Values expected(static_cast<std::size_t>(n * channels)), magnitude = expected, gradient(x.size());
        for (std::size_t i = 0; i < x.size(); ++i) {
          const std::int64_t at = static_cast<std::int64_t>(i), c = at % channels,
                             s = at / channels / positions;
          const auto out = static_cast<std::size_t>(s * channels + c);
          expected[out] += x[i] / static_cast<double>(positions);
          magnitude[out] += std::abs(x[i]) / static_cast<double>(positions);
          gradient[i] = dy[out] / static_cast<double>(positions);
        }
        std::vector<float> first;
        for (int shift : {0, 1}) {
          const CudaLane lane;
          const DeviceFloats dx(x, shift), ddy(dy, shift), y(n * channels, shift),
              back(n * positions * channels, shift);
          gpu().elementwise.global_average(lane, n, positions, channels, dx.data(), y.data());
          gpu().elementwise.global_average_backward(lane, n, positions, channels, ddy.data(), back.data());
          expect_close(y.values(), expected, magnitude, 66 * kRounding, 0.0, "average");
          expect_close(back.values(), gradient, gradient, 2 * kRounding, 0.0, "its gradient");
          if (shift == 0) first = y.host();
          expect_same(y.host(), first, "elsewhere");
        }
      }
}

TEST_F(CudaElementwise, DropoutHasTheMaskOfTheCpu) {
  for (std::int64_t n : {0, 1, 5, 300})
    for (std::int64_t features : {1, 4, 7, 64, 65, 300})
      for (int shift : {0, 1}) {
        const Values x = random_values(n * features, 7, 0.5, 1.0);
        const Floats cx(x), expected(n * features);
        const DeviceFloats dx(x, shift), y(n * features, shift), again(n * features, shift);
        const std::uint32_t step = 41;
        cpu_kernels().elementwise.dropout(TestLane(), n, features, cx.data(), 0.25F, 0x123456789ABCDEFULL, 9,
                                          step, 1000, expected.data());
        CudaLane lane;
        gpu().elementwise.dropout(lane, n, features, dx.data(), 0.25F, 0x123456789ABCDEFULL, 9, step, 1000,
                                  y.data());
        expect_same(y.host(), host_of(expected), "dropout");
        // The step from device memory, as in a captured graph.
        const OnDevice<std::uint32_t> word(std::vector<std::uint32_t>{step});
        lane.lane.step_word = word.data();
        gpu().elementwise.dropout(lane, n, features, dx.data(), 0.25F, 0x123456789ABCDEFULL, 9, 7, 1000,
                                  again.data());
        expect_same(again.host(), host_of(expected), "dropout with a step word");
      }
}

TEST_F(CudaElementwise, GaussianNoiseHasTheBitsOfTheCpu) {
  for (std::int64_t n : {0, 1, 5, 300})
    for (std::int64_t features : {1, 4, 7, 64, 65, 301}) {
      const Values x = random_values(n * features, 7);
      const Floats cx(x), expected(n * features);
      const DeviceFloats dx(x), y(n * features), again(n * features);
      const std::uint32_t step = 41;
      cpu_kernels().elementwise.gaussian_noise(TestLane(), n, features, cx.data(), 0.3F, 0x123456789ABCDEFULL,
                                               9, step, 1000, expected.data());
      CudaLane lane;
      gpu().elementwise.gaussian_noise(lane, n, features, dx.data(), 0.3F, 0x123456789ABCDEFULL, 9, step,
                                       1000, y.data());
      expect_same(y.host(), host_of(expected), "noise");
      const OnDevice<std::uint32_t> word(std::vector<std::uint32_t>{step});
      lane.lane.step_word = word.data();
      gpu().elementwise.gaussian_noise(lane, n, features, dx.data(), 0.3F, 0x123456789ABCDEFULL, 9, 7, 1000,
                                       again.data());
      expect_same(again.host(), host_of(expected), "noise with a step word");
    }
}

TEST_F(CudaElementwise, ALaneWithTooLittleScratchIsABug) {
  const CudaLane lane(1024);
  const DeviceFloats x(random_values(100000 * 4, 8)), sums(4);
  EXPECT_THROW(gpu().elementwise.mask_and_sum_rows(lane, 100000, 4, x.data(), nullptr, nullptr, sums.data()),
               Error);
}

template <typename T>
void expect_conversions_of_the_cpu(std::int64_t count, int shift) {
  const Values numbers = special_values(count, 3);
  const Floats from(numbers);
  const DeviceFloats device_from(numbers, shift);
  std::vector<T> narrow(from.size());
  OnDevice<T> device_narrow(count, shift);
  DeviceFloats device_wide(count, shift);
  Floats wide(count);
  const ElementwiseKernels &cpu = cpu_kernels().elementwise, &kernels = gpu().elementwise;
  const CudaLane lane;
  cpu.convert(TestLane(), count, from.data(), narrow.data());
  cpu.convert(TestLane(), count, narrow.data(), wide.data());
  kernels.convert(lane, count, device_from.data(), device_narrow.data());
  kernels.convert(lane, count, device_narrow.data(), device_wide.data());
  expect_same(device_wide.host(), host_of(wide), fmt::format("{} numbers, shift {}", count, shift));
}

TEST_F(CudaElementwise, ConversionsHaveTheBitsOfTheCpu) {
  for (std::int64_t count : kCounts)
    for (int shift : {0, 1}) {
      expect_conversions_of_the_cpu<BFloat16>(count, shift);
      expect_conversions_of_the_cpu<Float16>(count, shift);
    }
}

}  // namespace
}  // namespace lockstep
