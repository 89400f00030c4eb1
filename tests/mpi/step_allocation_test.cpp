// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A steady training step makes no allocations of Lockstep's own (counted_allocations.h).
#include <gtest/gtest.h>

#include "support/counted_allocations.h"
#include "support/mpi_world.h"
#include "support/tiny_run.h"

namespace lockstep {
namespace {

using StepAllocation = Warm;

TEST_F(StepAllocation, AllocationsAreCounted) {
  const Counts counts = counted([] { const std::vector<int> some(100); });
  EXPECT_EQ(counts.own, 1);
  EXPECT_EQ(counts.library, 0);
}

constexpr const char* kOwnKernels = R"(
- batch_norm
- relu: {name: r}
- max_pool: {name: p}
- batch_norm: {name: bn}
- add: {name: sum, inputs: [bn, p]}
- relu: {name: s}
- dropout: {rate: 0.3, name: d}
- add: {name: t, inputs: [d, s]}
- global_avg_pool
- softmax
)";
constexpr const char* kConvolutional = R"(
- conv2d: {filters: 5, kernel: 3}
- batch_norm
- relu: {name: r}
- conv2d: {filters: 5, kernel: 3, bias: false}
- batch_norm: {name: bn}
- add: {name: sum, inputs: [bn, r]}
- relu
- max_pool
- gelu
- flatten
- dropout: {rate: 0.2}
- dense: {units: 3}
)";

Counts counted_steps(const TinyRunOptions& options) {
  TinyRun run(test_world(), options);
  // After one epoch all microshard sizes have occurred; the last batch is smaller.
  const auto epoch = static_cast<int>(run.plan().steps_per_epoch());
  for (int i = 0; i < epoch; ++i) run.trainer().minimize();
  test_world().barrier("before");
  const Counts counts = counted([&] {
    for (int i = 0; i < epoch; ++i) run.trainer().minimize();
  });
  test_world().barrier("after");
  return counts;
}

TEST_F(StepAllocation, NoAllocationWithOwnKernels) {
  for (const char* optimizer : {"adam", "momentum: {learning_rate: 0.01}", "nadam",
                                "gradient_descent: {learning_rate: {exponential_decay: {initial: 0.1, "
                                "decay_steps: 3, decay_rate: 0.9}}}"})
    for (const int threads : {1, 2}) {
      const Counts counts = counted_steps({.layers = kOwnKernels,
                                           .optimizer = optimizer,
                                           .features = {6, 6, 3},
                                           .threads = threads,
                                           .overlap = threads == 2});
      EXPECT_EQ(counts.own, 0) << optimizer << ", " << threads << " threads" << first_own();
      EXPECT_EQ(counts.library, 0) << optimizer << ", " << threads << " threads";
    }
}

TEST_F(StepAllocation, NoAllocationWithASharedUpdate) {
  TinyRunOptions options{.layers = kOwnKernels, .features = {6, 6, 3}, .overlap = true, .shard = true};
  options.clip = {.by = ClipRule::By::global_norm, .limit = 0.01};
  options.average = AverageRule{.decay = 0.9F};
  EXPECT_EQ(counted_steps(options).own, 0) << first_own();
}

TEST_F(StepAllocation, NoAllocationWithEarlyUpdates) {
  for (const bool overlap : {false, true}) {
    TinyRunOptions options{.layers = kOwnKernels, .features = {6, 6, 3}, .threads = 2, .overlap = overlap};
    options.gating = Gating::none;
    options.bucket_first_bytes = options.bucket_bytes = 64;
    EXPECT_EQ(counted_steps(options).own, 0) << first_own();
  }
}

TEST_F(StepAllocation, ConvolutionsAllocateOnlyInOneDnn) {
  for (const bool dense_labels : {false, true})
    for (const int threads : {1, 2}) {
      const TinyRunOptions options{
          .layers = kConvolutional, .shards = 5, .threads = threads, .dense_labels = dense_labels};
      const Counts counts = counted_steps(options);
      EXPECT_EQ(counts.own, 0) << threads << " threads" << first_own();
      // 4 steps with at most 5 microshards on this rank; conv, conv, gelu and dense run 3 + 3 + 2 + 3
      // primitives and some reorders.
      const long executions = 4L * 5 * 20;
      EXPECT_LE(counts.library, 8 * executions);
      EXPECT_LE(counts.library_bytes, 400 * executions);
    }
}

TEST_F(StepAllocation, RecurrentLayersAllocateOnlyInOneDnn) {
  const Counts counts = counted_steps({.layers = R"(
- lstm: {units: 3, layers: 2, bidirectional: true, dropout: 0.2, recurrent_dropout: 0.2}
- gru: {units: 3, dropout: 0.2, variational: true}
- last_step
- dense: {units: 3}
)",
                                       .features = {6, 4},
                                       .threads = 2});
  EXPECT_EQ(counts.own, 0) << first_own();
  EXPECT_GT(counts.library, 0);
}

TEST_F(StepAllocation, SparseGradientsAllocateOnlyInOneDnn) {
  for (const int threads : {1, 2}) {
    TinyRunOptions options{.layers = R"(
- embedding: {rows: 500, units: 8}
- layer_norm
- attention: {units: 8, heads: 2, causal: true, dropout: 0.1}
- reduce: {operation: max, axes: [0]}
- dense: {units: 3}
)",
                           .features = {6},
                           .threads = threads,
                           .ids = 500};
    EXPECT_EQ(TinyRun(test_world(), options).variables().sparse().size(), 1U);
    EXPECT_EQ(counted_steps(options).own, 0) << threads << " threads" << first_own();
    for (const ClipRule::By by : {ClipRule::By::global_norm, ClipRule::By::norm, ClipRule::By::value}) {
      options.clip = {.by = by, .limit = 0.01, .low = -0.01F, .high = 0.01F, .record_norm = true};
      EXPECT_EQ(counted_steps(options).own, 0) << threads << " threads, clipped" << first_own();
    }
  }
}

}  // namespace
}  // namespace lockstep
