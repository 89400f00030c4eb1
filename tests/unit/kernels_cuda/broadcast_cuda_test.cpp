// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/broadcast.h"

#include "kernels/kernel_table.h"
#include "unit/kernels_cuda/stored_cuda_testing.h"

namespace lockstep {
namespace {

class CudaBroadcast : public GpuTest {};

const std::vector<BroadcastShape> kShapes{{0, 3, 2},    {1, 1, 1},   {3, 1, 17},   {5, 17, 1},
                                          {2, 3, 5},    {2, 64, 3},  {1, 300, 8},  {3, 2, 100},
                                          {2, 1300, 1}, {70, 40, 4}, {1, 1000, 33}};

TEST_F(CudaBroadcast, HasTheBitsOfTheCpuExceptInSums) {
  for (const BroadcastShape& s : kShapes)
    for (int shift : {0, 1}) {
      const std::string what = fmt::format("{}x{}x{} shift {}", s.outer, s.middle, s.inner, shift);
      const std::int64_t count = s.outer * s.middle * s.inner, small = s.outer * s.inner;
      Values a = random_values(count, 1);
      for (std::size_t i = 0; i < a.size(); ++i)
        a[i] = i % 7 == 5 ? std::nan("") : std::round(a[i] * 3.0);  // ties
      const Floats ca(a), cb(random_values(small, 2));
      Floats y(count), repeated(count), largest(small), dx(count);
      std::vector<std::int32_t> at(static_cast<std::size_t>(small));
      const BroadcastKernels& cpu = cpu_kernels().broadcast;
      cpu.multiply(TestLane(), s, ca.data(), cb.data(), y.data());
      cpu.repeat(TestLane(), s, 0.3F, cb.data(), repeated.data());
      cpu.maximum(TestLane(), s, ca.data(), largest.data(), at.data());
      cpu.maximum_backward(TestLane(), s, cb.data(), at.data(), dx.data());

      const CudaLane lane(0);
      const DeviceFloats ga(a, shift), gb(cb.values(), shift), gy(count, shift), grepeated(count, shift),
          glargest(small, shift), again(small, shift), gdx(count, shift);
      const OnDevice<std::int32_t> gat(small);
      gpu().broadcast.multiply(lane, s, ga.data(), gb.data(), gy.data());
      gpu().broadcast.repeat(lane, s, 0.3F, gb.data(), grepeated.data());
      gpu().broadcast.maximum(lane, s, ga.data(), glargest.data(), gat.data());
      gpu().broadcast.maximum(lane, s, ga.data(), again.data(), nullptr);
      gpu().broadcast.maximum_backward(lane, s, gb.data(), gat.data(), gdx.data());
      expect_same(gy.host(), host_of(y), "product " + what);
      expect_same(grepeated.host(), host_of(repeated), "repeated " + what);
      expect_same(glargest.host(), host_of(largest), "maximum " + what);
      expect_same(again.host(), host_of(largest), "maximum alone " + what);
      EXPECT_EQ(gat.host(), at) << what;
      expect_same(gdx.host(), host_of(dx), "gradient of the maximum " + what);
    }
}

TEST_F(CudaBroadcast, SumsMatchTheCpuAtAnyAddress) {
  for (const BroadcastShape& s : kShapes)
    for (const bool product : {false, true}) {
      const std::int64_t count = s.outer * s.middle * s.inner, small = s.outer * s.inner;
      const Floats a(random_values(count, 1)), b(random_values(count, 2));
      Floats expected(small);
      cpu_kernels().broadcast.sum(TestLane(), s, 0.25, a.data(), product ? b.data() : nullptr,
                                  expected.data());
      std::vector<float> first;
      for (int shift : {0, 1}) {
        const CudaLane lane(0);
        const DeviceFloats ga(a.values(), shift), gb(b.values(), shift), y(small, shift);
        gpu().broadcast.sum(lane, s, 0.25, ga.data(), product ? gb.data() : nullptr, y.data());
        // The terms are at most 0.25.
        expect_close(y.values(), expected.values(),
                     Values(expected.size(), 0.25 * static_cast<double>(s.middle)), 132 * kRounding, 0.0,
                     "sum");
        if (shift == 0) first = y.host();
        expect_same(y.host(), first, "elsewhere");
      }
    }
}

template <typename T>
void expect_those_of_the_cpu(const BroadcastShape& s, int shift) {
  const std::string what =
      fmt::format("{} {}x{}x{} shift {}", name_of(dtype_of<T>), s.outer, s.middle, s.inner, shift);
  const std::int64_t count = s.outer * s.middle * s.inner, small = s.outer * s.inner;
  Values numbers = random_values(count, 1);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = i % 7 == 5 ? std::nan("") : std::round(numbers[i] * 3.0);  // ties
  const Stored<T> a(numbers), b(random_values(small, 2)), terms(random_values(count, 3));
  const Floats factors(random_values(small, 4)), wide_terms = terms.widened();
  const Stored<T> y(count), scaled(count), repeated(count), largest(small), dx(count);
  const Floats sums(small), products(small);
  std::vector<std::int32_t> at(static_cast<std::size_t>(small));
  const BroadcastKernels& cpu = cpu_kernels().broadcast;
  cpu.multiply(TestLane(), s, a.data(), b.data(), y.data());
  cpu.multiply(TestLane(), s, a.data(), factors.data(), scaled.data());
  cpu.repeat(TestLane(), s, 0.3F, b.data(), repeated.data());
  cpu.maximum(TestLane(), s, a.data(), largest.data(), at.data());
  cpu.maximum_backward(TestLane(), s, b.data(), at.data(), dx.data());
  cpu.sum(TestLane(), s, 0.25, wide_terms.data(), nullptr, sums.data());
  cpu.sum(TestLane(), s, 0.25, wide_terms.data(), wide_terms.data(), products.data());

  const CudaLane lane(0);
  const OnDevice<T> ga = on_device(a, shift), gb = on_device(b, shift), gterms = on_device(terms, shift),
                    gy(count, shift), gscaled(count, shift), grepeated(count, shift), glargest(small, shift),
                    gdx(count, shift), gsums(small, shift), gproducts(small, shift);
  const DeviceFloats gfactors(factors.values(), shift);
  const OnDevice<std::int32_t> gat(small);
  const BroadcastKernels& kernels = gpu().broadcast;
  kernels.multiply(lane, s, ga.data(), gb.data(), gy.data());
  kernels.multiply(lane, s, ga.data(), gfactors.data(), gscaled.data());
  kernels.repeat(lane, s, 0.3F, gb.data(), grepeated.data());
  kernels.maximum(lane, s, ga.data(), glargest.data(), gat.data());
  kernels.maximum_backward(lane, s, gb.data(), gat.data(), gdx.data());
  kernels.sum(lane, s, 0.25, gterms.data(), nullptr, gsums.data());
  kernels.sum(lane, s, 0.25, gterms.data(), gterms.data(), gproducts.data());
  expect_same(gy, y, "product " + what);
  expect_same(gscaled, scaled, "product with float32 " + what);
  expect_same(grepeated, repeated, "repeated " + what);
  expect_same(glargest, largest, "maximum " + what);
  EXPECT_EQ(gat.host(), at) << what;
  expect_same(gdx, dx, "gradient of the maximum " + what);
  // The terms are at most 0.25.
  const double error = 132 * kRounding * 0.25 * static_cast<double>(s.middle);
  expect_near_rounded(gsums, sums, error, "sum " + what);
  expect_near_rounded(gproducts, products, error, "sum of products " + what);
}

TEST_F(CudaBroadcast, In16BitsMatchesTheCpu) {
  for (const BroadcastShape& s : kShapes)
    for (int shift : {0, 1}) {
      expect_those_of_the_cpu<BFloat16>(s, shift);
      expect_those_of_the_cpu<Float16>(s, shift);
    }
}

}  // namespace
}  // namespace lockstep
