// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/update.h"

#include "unit/kernels/rows_testing.h"
#include "unit/kernels_cuda/cuda_testing.h"

namespace lockstep {
namespace {

class CudaUpdate : public GpuTest {};

/// Runs three steps of an update on w, g and two slots, on the CPU and on the GPU, and expects equal bits.
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

TEST_F(CudaUpdate, UnscaleHasTheBitsOfTheCpuAndDetectsNan) {
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

TEST_F(CudaUpdate, RowsHaveTheBitsOfTheCpuAndOfDenseUpdates) {
  for (const RowRule& rule : row_rules())
    for (const RowCase& test : row_cases())
      for (const bool others : {true, false})
        for (const int shift : {0, 1}) {
          const std::string what = fmt::format("{} {} others {}", rule.name, test.text(), others);
          const auto count = static_cast<std::int64_t>(test.touched.size());
          const std::int64_t size = test.rows * test.width, cut = test.rows / 3;
          const Values values = random_values(count * test.width, 5), w = random_values(size, 1),
                       a = random_values(size, 2), b = random_values(size, 3, 0.0, 1.0);
          const Floats cw(w), ca(a), cb(b), cvalues(values);
          const DeviceFloats dw(w, shift), da(a, shift), db(b, shift), dvalues(values, shift);
          const DeviceFloats dense_w(w, shift), dense_a(a, shift), dense_b(b, shift),
              gradient(dense_gradient(test, values), shift);
          const OnDevice<std::int32_t> rows(test.touched);
          const CudaLane lane;
          for (const auto& [first, last] : {std::pair{std::int64_t{0}, cut}, std::pair{cut, test.rows}}) {
            RowUpdate update{first, last, test.width, count, test.touched.data(), cvalues.data(), others};
            rule.rows(cpu_kernels().update, TestLane(), update, cw.data(), ca.data(), cb.data());
            update.rows = rows.data();
            update.values = dvalues.data();
            rule.rows(gpu().update, lane, update, dw.data(), da.data(), db.data());
          }
          expect_same(dw.host(), host_of(cw), "w of " + what);
          expect_same(da.host(), host_of(ca), "the first slot of " + what);
          expect_same(db.host(), host_of(cb), "the second slot of " + what);
          if (!others) continue;
          rule.dense(gpu().update, lane, size, dense_w.data(), gradient.data(), dense_a.data(),
                     dense_b.data());
          expect_same(dw.host(), dense_w.host(), "w compared with a dense gradient, " + what);
          expect_same(da.host(), dense_a.host(), "the first slot compared with a dense gradient, " + what);
          expect_same(db.host(), dense_b.host(), "the second slot compared with a dense gradient, " + what);
        }
}

}  // namespace
}  // namespace lockstep
