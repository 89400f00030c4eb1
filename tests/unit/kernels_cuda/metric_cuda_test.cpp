// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/metric.h"

#include <cmath>
#include <limits>

#include "unit/kernels_cuda/cuda_testing.h"

namespace lockstep {
namespace {

class CudaMetric : public GpuTest {};

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN(),
                kInfinity = std::numeric_limits<float>::infinity();

// Rows with ties, labels that name no class, rows with NaN and infinities; row lengths for a warp and for a
// block.
TEST_F(CudaMetric, ClassScoresAreThoseOfTheCpu) {
  for (const std::int64_t classes : {1, 2, 10, 33, 1000, 1025, 3001})
    for (const std::int64_t rows : {1, 7, 70}) {
      const Values random = random_values(rows * classes, 1, -3, 3);
      std::vector<float> x;
      for (const double value : random) x.push_back(static_cast<float>(std::round(value * 8) / 8));
      std::vector<std::int32_t> labels;
      for (std::int64_t i = 0; i < rows; ++i) {
        labels.push_back(static_cast<std::int32_t>((i * 7 + 3) % (classes + 2)) - 1);
        float* const row = x.data() + i * classes;
        if (i % 10 == 3) row[(i * 5) % classes] = kNaN;
        if (i % 10 == 4) row[(i * 5) % classes] = kInfinity;
        if (i % 10 == 5) row[(i * 5) % classes] = -kInfinity;
        if (i % 10 == 6) std::fill_n(row, classes, kNaN);
        if (i % 10 == 8) std::fill_n(row, classes, -kInfinity);
      }
      for (const unsigned parts : {0U, 1U, 2U, 4U, 7U}) {
        std::vector<ClassScore> expected(static_cast<std::size_t>(rows));
        cpu_kernels().metric.class_scores(TestLane(), rows, classes, x.data(), labels.data(), parts,
                                          expected.data());
        const DeviceFloats on_gpu(x);
        const OnDevice<std::int32_t> labels_on_gpu(labels);
        const OnDevice<ClassScore> scores(rows);
        const CudaLane lane;
        gpu().metric.class_scores(lane, rows, classes, on_gpu.data(), labels_on_gpu.data(), parts,
                                  scores.data());
        const std::vector<ClassScore> found = scores.host();
        for (std::size_t i = 0; i < expected.size(); ++i) {
          const std::string at = fmt::format("{} classes, row {}, parts {}", classes, i, parts);
          EXPECT_EQ(found[i].largest, expected[i].largest) << at;
          EXPECT_EQ(found[i].larger, expected[i].larger) << at;
          if (std::isnan(expected[i].of_label))
            EXPECT_TRUE(std::isnan(found[i].of_label)) << at;
          else
            EXPECT_EQ(found[i].of_label, expected[i].of_label) << at;
          if (std::isnan(expected[i].cross_entropy))
            EXPECT_TRUE(std::isnan(found[i].cross_entropy)) << at;
          else if (std::isinf(expected[i].cross_entropy))
            EXPECT_EQ(found[i].cross_entropy, expected[i].cross_entropy) << at;
          else
            EXPECT_NEAR(found[i].cross_entropy, expected[i].cross_entropy, 1e-12) << at;
        }
      }
    }
}

}  // namespace
}  // namespace lockstep
