// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Sampling on a GPU: the drawn classes and the loss kernel. The layer tests compare the layers.
#include "kernels/sampling.h"

#include "unit/kernels_cuda/cuda_testing.h"

namespace lockstep {
namespace {

class CudaSampling : public GpuTest {};

TEST_F(CudaSampling, DrawsTheClassesOfTheCpu) {
  const std::int64_t classes = 5000;
  std::vector<double> probability;
  std::vector<std::uint64_t> cumulative;
  for (std::int64_t c = 0; c < classes; ++c) {
    const double below = std::log(static_cast<double>(c + 2)) / std::log(static_cast<double>(classes + 1));
    probability.push_back(std::log1p(1.0 / static_cast<double>(c + 1)) /
                          std::log(static_cast<double>(classes + 1)));
    cumulative.push_back(c + 1 == classes ? ~std::uint64_t{0} : static_cast<std::uint64_t>(below * 0x1p64));
  }
  const OnDevice<std::uint64_t> device_cumulative(cumulative);
  const DeviceDoubles device_probability(probability);
  const ClassDistribution host{classes, cumulative.data(), probability.data()},
      device{classes, device_cumulative.data(), device_probability.data()};
  const SamplingKernels &cpu = cpu_kernels().sampling, &kernels = gpu().sampling;
  for (std::int64_t sampled : {1, 7, 256, 700})  // one round of a block, and several
    for (std::uint32_t step : {0U, 5U}) {
      const DrawKey key{0x123456789ABCULL, 77, step};
      std::vector<float> expected(static_cast<std::size_t>(sampled));
      std::vector<std::int64_t> workspace(cpu.draw_bytes(sampled) / sizeof(std::int64_t) + 1);
      double tries = 0;
      cpu.draw_distinct(TestLane(), host, key, sampled, workspace.data(), expected.data(), &tries);
      CudaLane lane;
      const DeviceFloats ids(sampled), again(sampled);
      const DeviceDoubles device_tries(1);
      kernels.draw_distinct(lane, device, key, sampled, nullptr, ids.data(), device_tries.data());
      expect_same(ids.host(), expected, fmt::format("{} classes", sampled));
      expect_same(device_tries.host(), std::vector<double>{tries}, "tries");
      // The step from device memory, as in a captured graph.
      const OnDevice<std::uint32_t> word(std::vector<std::uint32_t>{step});
      lane.lane.step_word = word.data();
      kernels.draw_distinct(lane, device, {key.seed, key.purpose, 99}, sampled, nullptr, again.data(),
                            device_tries.data());
      expect_same(again.host(), expected, "with a step word");
    }
  for (std::int64_t each : {1, 3, 4}) {
    const std::int64_t n = 300;
    std::vector<float> expected(static_cast<std::size_t>(n * each));
    cpu.draw_each(TestLane(), host, {1, 2, 3}, n, each, 40, expected.data());
    const CudaLane lane;
    const DeviceFloats ids(n * each);
    kernels.draw_each(lane, device, {1, 2, 3}, n, each, 40, ids.data());
    expect_same(ids.host(), expected, fmt::format("{} classes of each sample", each));
  }
}

/// More classes than a warp has threads, hits, per-sample offsets, and a class that does not exist.
TEST_F(CudaSampling, LossesMatchTheCpuWithinRounding) {
  for (SampledLoss kind : {SampledLoss::softmax, SampledLoss::sigmoid})
    for (bool all_classes : {false, true}) {
      const std::int64_t n = 37, num_true = 2, sampled = 90;
      Values targets, ids;
      for (double u : random_values(n * num_true, 1, 0, 1)) targets.push_back(std::floor(u * 90));
      for (std::int64_t j = 0; j < sampled; ++j) ids.push_back(static_cast<double>(j * 7 % 90));
      const Values truth = random_values(n * num_true, 2, -3, 3), z = random_values(n * sampled, 3, -3, 3),
                   offsets = random_values(sampled, 4);
      const Floats htargets(targets), hids(ids), htruth(truth), hz(z), hoffsets(offsets), hloss(n);
      const DeviceFloats dtargets(targets), dids(ids), dtruth(truth), dz(z), doffsets(offsets), dloss(n);
      SampledProblem problem{.loss = kind,
                             .n = n,
                             .num_true = num_true,
                             .sampled = sampled,
                             .targets = htargets.data(),
                             .sampled_ids = all_classes ? nullptr : hids.data(),
                             .remove_hits = true};
      cpu_kernels().sampling.loss(TestLane(), problem, hoffsets.data(), htruth.data(), hz.data(),
                                  hloss.data());
      problem.targets = dtargets.data();
      problem.sampled_ids = all_classes ? nullptr : dids.data();
      const CudaLane lane;
      gpu().sampling.loss(lane, problem, doffsets.data(), dtruth.data(), dz.data(), dloss.data());
      // exp, log and related functions are within some units in the last place on both sides.
      expect_close(dloss.values(), hloss.values(), hloss.values(), 40 * kRounding, 0.0, "loss");
      expect_close(dz.values(), hz.values(), hz.values(), 40 * kRounding, 1e-7, "gradients");
      expect_close(dtruth.values(), htruth.values(), htruth.values(), 40 * kRounding, 1e-7, "true gradients");
    }
}

}  // namespace
}  // namespace lockstep
