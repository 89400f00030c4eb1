// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Every loss on a GPU compared with the same loss on the CPU.
#include <cmath>

#include "cuda_testing.h"
#include "kernels/backend.h"
#include "kernels/backend_cuda.h"
#include "kernels/penalty_table.h"
#include "unit/model/loss_cases.h"

namespace lockstep {
namespace {

class LossOnGpu : public GpuTest {};

struct Found {
  double loss = 0;
  std::int64_t correct = 0;
  std::vector<float> gradient;
};

Found on_cpu(const LossCase& test, std::int64_t n, const std::vector<float>& x, const CaseLabels& labels,
             const std::vector<float>& weights = {}) {
  const std::unique_ptr<Loss> loss = make_loss(parse_yaml(test.yaml, "test"));
  loss->prepare(cpu_device(), test.output);
  LossSums sums;
  Found found{.gradient = std::vector<float>(x.size())};
  Labels all = labels.labels();
  if (!weights.empty()) all.weights = weights.data();
  loss->run(cpu_kernels(), Lane{}, n, test.output, x.data(), all, 0.125F, found.gradient.data(), &sums);
  return {sums.loss, sums.correct, found.gradient};
}

Found on_gpu(const LossCase& test, std::int64_t n, const std::vector<float>& x, const CaseLabels& labels,
             bool gradient = true, const std::vector<float>& weights = {}) {
  Device& device = cuda_backend().open(0);
  const std::unique_ptr<Loss> loss = make_loss(parse_yaml(test.yaml, "test"));
  loss->prepare(device, test.output);
  const CudaLane lane;
  const DeviceFloats dx(x), rows(labels.rows), of_samples(weights),
      d_outputs(static_cast<std::int64_t>(x.size()));
  const OnDevice<std::int32_t> indices(labels.indices);
  const Buffer sums = Buffer::pinned(device, sizeof(LossSums));
  loss->run(cuda_backend().kernels({}), lane, n, test.output, dx.data(),
            {.indices = labels.indices.empty() ? nullptr : indices.data(),
             .rows = labels.rows.empty() ? nullptr : rows.data(),
             .weights = weights.empty() ? nullptr : of_samples.data()},
            0.125F, gradient ? d_outputs.data() : nullptr, sums.as<LossSums>().data());
  device.synchronize(lane.lane.stream);
  const LossSums& found = sums.as<LossSums>()[0];
  return {found.loss, found.correct, gradient ? d_outputs.host() : std::vector<float>{}};
}

TEST_F(LossOnGpu, MatchesTheCpuAndRepeatsItsBits) {
  for (const LossCase& test : loss_cases())
    for (const std::int64_t n : {1, 3, 17}) {
      const std::string what = fmt::format("{} of {}, {} samples", test.yaml, test.output.to_string(), n);
      SCOPED_TRACE(what);
      const CaseLabels labels(test, n);
      const auto x = random_floats(static_cast<std::size_t>(n * test.output.num_elements()), 3, -3, 3);
      const Found cpu = on_cpu(test, n, x, labels), gpu = on_gpu(test, n, x, labels);
      EXPECT_NEAR(gpu.loss, cpu.loss, 1e-6 * (std::abs(cpu.loss) + 0.1));
      EXPECT_EQ(gpu.correct, cpu.correct);
      for (std::size_t i = 0; i < x.size(); ++i)
        ASSERT_NEAR(static_cast<double>(gpu.gradient[i]), static_cast<double>(cpu.gradient[i]), 1e-6) << i;
      const Found again = on_gpu(test, n, x, labels);
      EXPECT_EQ(again.loss, gpu.loss);
      expect_same(again.gradient, gpu.gradient, what);
      EXPECT_EQ(on_gpu(test, n, x, labels, false).loss, gpu.loss) << "without a gradient";
    }
}

TEST_F(LossOnGpu, WeightsOfSamplesMatchTheCpu) {
  const std::vector<float> weights = {0.5F, 0.0F, 2.0F, 1.0F, 0.25F};
  for (const LossCase& test : loss_cases()) {
    if (!make_loss(parse_yaml(test.yaml, "test"))->takes_weights()) continue;
    SCOPED_TRACE(test.yaml + " of " + test.output.to_string());
    const CaseLabels labels(test, std::ssize(weights));
    const auto x =
        random_floats(weights.size() * static_cast<std::size_t>(test.output.num_elements()), 3, -3, 3);
    const Found cpu = on_cpu(test, std::ssize(weights), x, labels, weights),
                gpu = on_gpu(test, std::ssize(weights), x, labels, true, weights);
    EXPECT_NEAR(gpu.loss, cpu.loss, 1e-6 * (std::abs(cpu.loss) + 0.1));
    EXPECT_EQ(gpu.correct, cpu.correct);
    for (std::size_t i = 0; i < x.size(); ++i)
      ASSERT_NEAR(static_cast<double>(gpu.gradient[i]), static_cast<double>(cpu.gradient[i]), 1e-6) << i;
  }
}

TEST_F(LossOnGpu, NanPropagates) {
  for (const LossCase& test : loss_cases()) {
    const CaseLabels labels(test, 2);
    auto x = random_floats(static_cast<std::size_t>(2 * test.output.num_elements()), 3, -3, 3);
    x[0] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_TRUE(std::isnan(on_gpu(test, 2, x, labels).loss)) << test.yaml;
  }
}

TEST_F(LossOnGpu, AnEmptyMicroshardHasZeroLoss) {
  for (const LossCase& test : loss_cases()) EXPECT_EQ(on_gpu(test, 0, {}, CaseLabels(test, 0)).loss, 0);
}

TEST_F(LossOnGpu, PenaltiesMatchTheCpu) {
  const auto w = random_floats(3000, 4, -2, 2), gradient = random_floats(3000, 5, -1, 1);
  std::vector<float> expected = gradient;
  double cpu = 0;
  cpu_kernels().loss_terms.penalty(Lane{}, 0.25, 0.5, 3000, w.data(), expected.data(), &cpu);
  double formula = 0;
  for (const float value : w)
    formula += 0.25 * std::pow(static_cast<double>(value), 2) + 0.25 * std::abs(static_cast<double>(value));
  EXPECT_NEAR(cpu, formula, 1e-9 * formula);
  const CudaLane lane;
  const DeviceFloats values(w), sum_of(gradient);
  const DeviceDoubles sum(1);
  gpu().loss_terms.penalty(lane, 0.25, 0.5, 3000, values.data(), sum_of.data(), sum.data());
  EXPECT_NEAR(sum.host()[0], formula, 1e-9 * formula);
  expect_same(sum_of.host(), expected, "gradient");
}

TEST_F(LossOnGpu, PenaltiesOfATableAreThoseOfItsBlocks) {
  const auto w = random_floats(3000, 4, -2, 2), gradient = random_floats(3000, 5, -1, 1);
  const std::vector<PenaltyBlock> blocks{{0, 700, 0.25, 0.5}, {1000, 1, 0, 2}, {1100, 1900, 0.125, 0}};
  std::vector<float> expected = gradient;
  std::vector<double> cpu(blocks.size());
  for (std::size_t b = 0; b < blocks.size(); ++b)
    cpu_kernels().loss_terms.penalty(Lane{}, blocks[b].l1, blocks[b].l2, blocks[b].count,
                                     w.data() + blocks[b].first, expected.data() + blocks[b].first, &cpu[b]);
  const auto* const table = dynamic_cast<const PenaltyTableKernels*>(&gpu().loss_terms);
  ASSERT_NE(table, nullptr);
  const CudaLane lane;
  const DeviceFloats values(w), sum_of(gradient);
  const DeviceDoubles sums(blocks.size());
  const OnDevice<PenaltyBlock> on_device(blocks);
  const PenaltyBlock* const first = on_device.data();
  table->penalties(lane, std::ssize(blocks), first, values.data(), nullptr, sums.data());
  table->penalties(lane, std::ssize(blocks), first, values.data(), sum_of.data(), nullptr);
  for (std::size_t b = 0; b < blocks.size(); ++b)
    EXPECT_NEAR(sums.host()[b], cpu[b], 1e-9 * cpu[b]) << "block " << b;
  expect_same(sum_of.host(), expected, "gradient");
}

}  // namespace
}  // namespace lockstep
