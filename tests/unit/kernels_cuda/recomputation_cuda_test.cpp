// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Recomputation of activations on a GPU: the bits of a step that keeps all of them, call by call and from
// recordings, on one branch and on several.
#include <gtest/gtest.h>

#include "unit/kernels_cuda/training_cuda_testing.h"

namespace lockstep {
namespace {

class CudaRecomputation : public GpuTrainingTest {
 protected:
  Outcome train(TinyRunOptions options, Recompute recompute, int branches) {
    options.branches = branches;
    options.recompute = recompute;
    return train_on_gpu(options, [&](Trainer& trainer) {
      recomputed_ = static_cast<int>(
          std::ranges::count_if(trainer.executor().calls().operations, &Graph::Operation::recomputed));
    });
  }
  void same_bits(const TinyRunOptions& options) {
    const Outcome kept = train(options, Recompute::none, 1);
    EXPECT_EQ(recomputed_, 0);
    EXPECT_NE(kept.losses.front(), kept.losses.back());
    for (const Recompute recompute : {Recompute::marked, Recompute::automatic})
      for (const int branches : {1, 3}) {
        EXPECT_EQ(train(options, recompute, branches), kept)
            << static_cast<int>(recompute) << ' ' << branches;
        EXPECT_GT(recomputed_, 0);
      }
  }
  int recomputed_ = 0;  ///< calls of the last run
};

TEST_F(CudaRecomputation, SynchronisedBatchNormAndDropout) {
  same_bits({.layers = R"(
- conv2d: {filters: 4, kernel: 3, recompute: one}
- batch_norm: {recompute: one}
- relu: {recompute: one}
- dropout: {rate: 0.3, recompute: one}
- conv2d: {filters: 4, kernel: 3, recompute: two}
- batch_norm: {group: 2, recompute: two}
- tanh: {recompute: two}
- max_pool: {recompute: two}
- flatten
- dense: {units: 3}
)",
             .shards = 6});
}

TEST_F(CudaRecomputation, AttentionSumsAndRecurrence) {
  same_bits({.layers = R"(
- dense: {name: x, units: 8}
- layer_norm: {recompute: one}
- attention: {units: 8, heads: 2, dropout: 0.2, recompute: one}
- drop_path: {rate: 0.3, recompute: one}
- add: {inputs: [x, drop_path1], recompute: one}
- lstm: {units: 6, recompute: two}
- gru: {units: 6, recompute: two}
- last_step
- dense: {units: 3}
)",
             .features = {5, 4},
             .shards = 6});
}

}  // namespace
}  // namespace lockstep
