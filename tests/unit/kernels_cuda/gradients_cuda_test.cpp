// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Gradients on a GPU, changed on the host between the two halves of a step: dense ones and rows.
#include "train/gradients.h"

#include <gtest/gtest.h>

#include "comm/self_communicator.h"
#include "kernels/backend.h"
#include "kernels/backend_cuda.h"
#include "support/tiny_run.h"
#include "unit/kernels_cuda/cuda_testing.h"

namespace lockstep {
namespace {

class CudaGradients : public GpuTest {
 protected:
  std::uint64_t digest(float rate, float factor) {
    static Device& device = cuda_backend().open(0);
    SelfCommunicator world;
    TinyRun run(world, {.layers = "[flatten, embedding: {rows: 900, units: 4}, flatten, dense: {units: 3}]",
                        .optimizer = fmt::format("gradient_descent: {{learning_rate: {}}}", rate),
                        .features = {7},
                        .ids = 900,
                        .device = &device,
                        .kernels = &gpu()});
    for (int i = 0; i < 3; ++i) {
      Gradients& gradients = run.trainer().compute_gradients();
      EXPECT_GT(gradients.of("embedding1/embeddings").rows.size(), 0U);
      for (const GradientAndVariable& pair : gradients)
        for (float& value : pair.gradient) value *= factor;
      run.trainer().apply_gradients(gradients);
    }
    return run.variables().hash();
  }
};

TEST_F(CudaGradients, AChangeReachesTheDevice) {
  EXPECT_EQ(digest(0.0625F, 2), digest(0.125F, 1));
  EXPECT_NE(digest(0.125F, 2), digest(0.125F, 1));
}

}  // namespace
}  // namespace lockstep
