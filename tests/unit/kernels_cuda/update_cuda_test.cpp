// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/update.h"

#include "unit/kernels/rows_testing.h"
#include "unit/kernels/rules_testing.h"
#include "unit/kernels_cuda/cuda_testing.h"

namespace lockstep {
namespace {

class CudaUpdate : public GpuTest {};

TEST_F(CudaUpdate, EveryRuleHasTheBitsOfTheCpu) {
  for (const TestedRule& rule : tested_rules())
    for (std::int64_t count : {0, 1, 3, 17, 1023, 4100})
      for (int shift : {0, 1}) {
        std::vector<Floats> on_cpu;  // w and the slots
        std::vector<DeviceFloats> on_gpu;
        for (std::uint32_t s = 1; s < 5; ++s) {
          const Values values = random_values(count, s, s == 1 ? -1.0 : 0.0, 1.0);
          on_cpu.emplace_back(values);
          on_gpu.emplace_back(values, shift);
        }
        const CudaLane lane;
        for (std::uint32_t step = 0; step < 3; ++step) {
          const Values g = random_values(count, 6 + step);
          const Floats cg(g);
          const DeviceFloats dg(g, shift);
          rule.dense(cpu_kernels().update, TestLane(), count, on_cpu[0].data(), cg.data(), on_cpu[1].data(),
                     on_cpu[2].data(), on_cpu[3].data());
          rule.dense(gpu().update, lane, count, on_gpu[0].data(), dg.data(), on_gpu[1].data(),
                     on_gpu[2].data(), on_gpu[3].data());
        }
        for (std::size_t k = 0; k < on_cpu.size(); ++k)
          expect_same(on_gpu[k].host(), host_of(on_cpu[k]),
                      fmt::format("array {} of {}, {} numbers", k, rule.name, count));
      }
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

TEST_F(CudaUpdate, LookFindsWhatTheCpuFinds) {
  constexpr std::int64_t kRoom = 9, kWidth = 5;
  for (std::int64_t count : {1, 3, 17, 1023, 4100})
    for (int shift : {0, 1})
      for (const double value : {0x1.fffffep62, 0x1p63, -0x1p63, std::nan(""), static_cast<double>(INFINITY)})
        for (const float most : {0x1.fffffep62F, static_cast<float>(INFINITY)}) {
          Values values = random_values(count, 1);
          values[static_cast<std::size_t>(count / 2)] = value;
          const DeviceFloats looked(values, shift);
          const OnDevice<NumbersFound> found(std::vector<NumbersFound>{{}});
          NumbersFound expected;
          const CudaLane lane;
          cpu_kernels().update.look(TestLane(), count, Floats(values).data(), most, &expected);
          gpu().update.look(lane, count, looked.data(), most, found.data());
          EXPECT_EQ(found.host()[0].large, expected.large) << value << " " << most;
          EXPECT_EQ(found.host()[0].not_finite, expected.not_finite) << value << " " << most;
        }
  for (const std::int32_t given : {0, 1, 4, 9}) {
    Values values = random_values(kRoom * kWidth, 3);
    for (std::size_t i = static_cast<std::size_t>(given * kWidth); i < values.size(); ++i) values[i] = NAN;
    for (const bool large : {false, true}) {
      if (large && given > 0) values[static_cast<std::size_t>(given * kWidth - 1)] = 1e30;
      const DeviceFloats looked(values);
      const OnDevice<std::int32_t> count(std::vector<std::int32_t>{given});
      const OnDevice<NumbersFound> found(std::vector<NumbersFound>{{}});
      const CudaLane lane;
      gpu().update.look_at_rows(lane, {count.data(), nullptr, looked.data(), kRoom}, 0, kRoom, kWidth, 1e18F,
                                found.data());
      EXPECT_EQ(found.host()[0].large, large && given > 0 ? 1 : 0) << given;
      EXPECT_EQ(found.host()[0].not_finite, 0) << given;
    }
  }
}

// The GPU knows how many rows there are; what lies behind them is not read.
TEST_F(CudaUpdate, RowsAreUnscaledAsFarAsThereAreAny) {
  constexpr std::int64_t kRoom = 9, kWidth = 5;
  for (const std::int32_t given : {0, 1, 4, 9})
    for (const bool overflows : {false, true}) {
      Values values = random_values(kRoom * kWidth, 3);
      if (overflows && given > 0) values[static_cast<std::size_t>(given * kWidth - 1)] = INFINITY;
      for (std::size_t i = static_cast<std::size_t>(given * kWidth); i < values.size(); ++i) values[i] = NAN;
      Floats expected(values);
      const DeviceFloats scaled(values);
      std::int32_t count = given, cpu_flag = 0;
      const std::vector<std::int32_t> counts{count}, zero{0};
      const OnDevice<std::int32_t> count_on_gpu(counts), flag(zero);
      cpu_kernels().update.unscale_rows(TestLane(), {&count, nullptr, expected.data()}, 0, kRoom, kWidth,
                                        0.25F, &cpu_flag);
      const CudaLane lane;
      gpu().update.unscale_rows(lane, {count_on_gpu.data(), nullptr, scaled.data(), kRoom}, 0, kRoom, kWidth,
                                0.25F, flag.data());
      EXPECT_EQ(cpu_flag, overflows && given > 0 ? 1 : 0);
      EXPECT_EQ(flag.host().front(), cpu_flag);
      const std::vector<float> on_gpu = scaled.host(), on_cpu = host_of(expected);
      for (std::size_t i = 0; i < static_cast<std::size_t>(given * kWidth); ++i)
        EXPECT_EQ(on_gpu[i], on_cpu[i]) << given << " rows, element " << i;
    }
}

TEST_F(CudaUpdate, RowsHaveTheBitsOfTheCpuAndOfDenseUpdates) {
  for (const TestedRule& rule : tested_rules())
    for (const RowCase& test : row_cases(rule.name == "adam" || rule.name == "gradient descent"))
      for (const bool others : {true, false})
        for (const int shift : {0, 1}) {
          const std::string what = fmt::format("{} {} others {}", rule.name, test.text(), others);
          const auto count = static_cast<std::int64_t>(test.touched.size());
          const std::int64_t size = test.rows * test.width, cut = test.rows / 3;
          const Values values = random_values(count * test.width, 5);
          std::vector<Floats> on_cpu;  // w and the slots
          std::vector<DeviceFloats> on_gpu, dense;
          for (std::uint32_t s = 1; s < 5; ++s) {
            const Values begin = random_values(size, s, s == 1 ? -1.0 : 0.0, 1.0);
            on_cpu.emplace_back(begin);
            on_gpu.emplace_back(begin, shift);
            dense.emplace_back(begin, shift);
          }
          const Floats cvalues(values);
          const DeviceFloats dvalues(values, shift), gradient(dense_gradient(test, values), shift);
          const OnDevice<std::int32_t> rows(test.touched);
          // The host knows a bound only, and the list is not filled up to it.
          const std::vector<std::int32_t> number{static_cast<std::int32_t>(count)};
          const OnDevice<std::int32_t> number_on_gpu(number);
          const CudaLane lane;
          for (const auto& [first, last] : {std::pair{std::int64_t{0}, cut}, std::pair{cut, test.rows}}) {
            RowUpdate update{first,          last,  test.width, number.data(), count, test.touched.data(),
                             cvalues.data(), others};
            rule.rows(cpu_kernels().update, TestLane(), update, on_cpu[0].data(), on_cpu[1].data(),
                      on_cpu[2].data(), on_cpu[3].data());
            update.count = number_on_gpu.data();
            update.most = count + 3;
            update.rows = rows.data();
            update.values = dvalues.data();
            rule.rows(gpu().update, lane, update, on_gpu[0].data(), on_gpu[1].data(), on_gpu[2].data(),
                      on_gpu[3].data());
          }
          rule.dense(gpu().update, lane, size, dense[0].data(), gradient.data(), dense[1].data(),
                     dense[2].data(), dense[3].data());
          for (std::size_t k = 0; k < on_cpu.size(); ++k) {
            expect_same(on_gpu[k].host(), host_of(on_cpu[k]), fmt::format("array {} of {}", k, what));
            if (others)
              expect_same(on_gpu[k].host(), dense[k].host(),
                          fmt::format("array {} compared with a dense gradient, {}", k, what));
          }
        }
}

}  // namespace
}  // namespace lockstep
