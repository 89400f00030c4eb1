// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/update.h"

#include "unit/kernels_cuda/cuda_testing.h"

namespace lockstep {
namespace {

class CudaUpdate : public GpuTest {};

/// Runs three steps of an update on w, g and two slots; on the CPU and on the GPU it must give the same bits.
template <typename Run>
void expect_bits_of_cpu(const char* what, const Run& run) {
  for (std::int64_t count : {0, 1, 3, 17, 1023, 4100})
    for (int shift : {0, 1}) {
      const Values w = random_values(count, 1), m = random_values(count, 2),
                   v = random_values(count, 3, 0.0, 1.0);
      const Floats cw(w), cm(m), cv(v);
      const DeviceFloats dw(w, shift), dm(m, shift), dv(v, shift);
      const CudaLane lane;
      for (std::uint32_t step = 0; step < 3; ++step) {
        const Values g = random_values(count, 4 + step);
        const Floats cg(g);
        const DeviceFloats dg(g, shift);
        run(cpu_kernels().update, TestLane(), count, cw.data(), cg.data(), cm.data(), cv.data());
        run(gpu().update, lane, count, dw.data(), dg.data(), dm.data(), dv.data());
      }
      const std::string at = fmt::format("{} {}", what, count);
      expect_same(dw.host(), host_of(cw), "w of " + at);
      expect_same(dm.host(), host_of(cm), "the first slot of " + at);
      expect_same(dv.host(), host_of(cv), "the second slot of " + at);
    }
}
using Kernels = const UpdateKernels&;

TEST_F(CudaUpdate, GradientDescentHasTheBitsOfTheCpu) {
  expect_bits_of_cpu("gradient descent",
                     [](Kernels k, const Lane& l, std::int64_t count, float* w, const float* g, float*,
                        float*) { k.gradient_descent(l, count, w, g, 0.1F); });
}

TEST_F(CudaUpdate, MomentumHasTheBitsOfTheCpu) {
  for (bool nesterov : {false, true})
    expect_bits_of_cpu("momentum",
                       [=](Kernels k, const Lane& l, std::int64_t count, float* w, const float* g, float* a,
                           float*) { k.momentum(l, count, w, g, a, 0.1F, 0.9F, nesterov); });
}

TEST_F(CudaUpdate, AdamHasTheBitsOfTheCpu) {
  expect_bits_of_cpu(
      "adam", [](Kernels k, const Lane& l, std::int64_t count, float* w, const float* g, float* m, float* v) {
        k.adam(l, count, w, g, m, v, 0.01F, 0.9F, 0.999F, 1e-8F);
      });
}

TEST_F(CudaUpdate, UnscaleHasTheBitsOfTheCpuAndFindsWhatIsNotFinite) {
  for (std::int64_t count : {1, 3, 17, 1023, 4100})
    for (int shift : {0, 1})
      for (const double broken : {0.25, std::nan(""), static_cast<double>(INFINITY)})
        for (std::int64_t at : {std::int64_t{0}, count - 1}) {
          Values values = random_values(count, 1);
          values[static_cast<std::size_t>(at)] = broken;
          const Floats expected(values);
          const DeviceFloats g(values, shift);
          const OnDevice<std::int32_t> flag(std::vector<std::int32_t>{0});
          std::int32_t cpu_flag = 0;
          const CudaLane lane;
          cpu_kernels().update.unscale(TestLane(), count, 0x1p-10F, expected.data(), &cpu_flag);
          gpu().update.unscale(lane, count, 0x1p-10F, g.data(), flag.data());
          expect_same(g.host(), host_of(expected), fmt::format("{} numbers", count));
          EXPECT_EQ(flag.host()[0], cpu_flag);
          EXPECT_EQ(cpu_flag, std::isfinite(broken) ? 0 : 1);
        }
}

}  // namespace
}  // namespace lockstep
