// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Training on a GPU with several branches: the bits of one branch. The first steps run call by call, the
// later ones from recordings. The emulated GPU runs the branches late, early and in turn.
#include "train/branches.h"

#include <gtest/gtest.h>

#include <cmath>

#include "unit/kernels_cuda/training_cuda_testing.h"

namespace lockstep {
namespace {

class CudaBranches : public GpuTrainingTest {
 protected:
  static Outcome train(TinyRunOptions options, int branches) {
    options.branches = branches;
    return train_on_gpu(options, [&](Trainer& trainer) {
      EXPECT_EQ(trainer.executor().num_lanes(), std::min(branches, options.shards));
      if (options.scales_loss) trainer.set_loss_scale(256);
    });
  }
  void same_bits(const TinyRunOptions& options) {
    const Outcome one = train(options, 1);
    EXPECT_TRUE(std::isfinite(one.losses.back()) && one.losses.back() != one.losses.front());
    for (const int branches : {2, 3, 4, 8}) EXPECT_EQ(train(options, branches), one) << branches;
  }
};

TEST_F(CudaBranches, DropoutAndUnevenShards) {
  // An epoch ends with a batch of 12 samples for 7 and 16 shards, some of which are empty.
  const char* const layers = "[flatten, dense: {units: 24}, relu, dropout: {rate: 0.3}, dense: {units: 3}]";
  for (const int shards : {4, 7, 16}) same_bits({.layers = layers, .shards = shards});
}

TEST_F(CudaBranches, SynchronisedBatchNorm) {
  same_bits({.layers = "[conv2d: {filters: 6, kernel: 3}, batch_norm, relu, conv2d: {filters: 4, kernel: 3}, "
                       "batch_norm, global_avg_pool, dense: {units: 3}]",
             .shards = 8});
}

TEST_F(CudaBranches, BatchNormOfGroups) {
  same_bits({.layers = "[conv2d: {filters: 6, kernel: 3}, batch_norm: {group: 2}, relu, flatten, "
                       "dense: {units: 8}, batch_norm: {group: 1}, dense: {units: 3}]",
             .shards = 8});
}

TEST_F(CudaBranches, SparseTables) {
  same_bits({.layers = "[flatten, embedding: {rows: 900, units: 4}, flatten, dense: {units: 3}]",
             .features = {7},
             .shards = 8,
             .ids = 900});
}

TEST_F(CudaBranches, ClippedNormsAndALossScale) {
  same_bits({.layers = "[flatten, dense: {units: 24}, layer_norm, gelu, dense: {units: 3}]",
             .shards = 5,
             .scales_loss = true,
             .clip = {.by = ClipRule::By::global_norm, .limit = 0.5}});
}

}  // namespace
}  // namespace lockstep
