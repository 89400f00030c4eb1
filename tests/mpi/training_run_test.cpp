// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Whole steps on any number of ranks and threads: training with dropout, batch norm and a smaller last batch
// has the bits of one rank, and an evaluation counts every sample once.
#include <gtest/gtest.h>

#include "comm/self_communicator.h"
#include "support/mpi_world.h"
#include "support/tiny_run.h"
#include "train/evaluation.h"

namespace lockstep {
namespace {

constexpr const char* kNormalised = R"(
- conv2d: {filters: 5, kernel: 3}
- batch_norm: {momentum: 0.8}
- relu: {name: r}
- conv2d: {filters: 5, kernel: 3, bias: false}
- batch_norm: {name: bn, momentum: 0.8}
- add: {name: sum, inputs: [bn, r]}
- relu
- max_pool
- flatten
- dropout: {rate: 0.2}
- dense: {units: 3}
)";
constexpr const char* kPlain = "[flatten, dense: {units: 9}, relu, dropout: {rate: 0.5}, dense: {units: 3}]";

struct Ending {
  std::uint64_t variables = 0;
  double loss = 0;
  EvaluationResult evaluation;
};

/// Seven steps, then an evaluation with batches that do not divide the set. The fourth step is the last of an
/// epoch and has 12 samples, so with 16 shards it has empty microshards.
Ending ending(Communicator& world, TinyRunOptions options, std::int64_t evaluation_batch) {
  TinyRun run(world, options);
  Ending result;
  for (int i = 0; i < 7; ++i) result.loss = run.trainer().minimize().loss;
  result.variables = run.variables().hash();
  const UsedDataset dataset(std::make_shared<const ReaderDataset>(random_dataset(options)));
  Evaluation evaluation(run.context(), run.control(), dataset, evaluation_batch);
  run.workers().grow_scratch(evaluation.scratch_bytes());
  result.evaluation = evaluation.run();
  return result;
}

TEST(TrainingRun, SameBitsAsOneRank) {
  SelfCommunicator self;
  for (const char* layers : {kNormalised, kPlain})
    for (const int shards : {4, 5, 16}) {
      const TinyRunOptions options{
          .layers = layers, .optimizer = "momentum: {learning_rate: 0.05}", .shards = shards};
      const Ending expected = ending(self, options, 23);
      EXPECT_EQ(expected.evaluation.samples, 60);
      for (const int threads : {1, 2}) {
        TinyRunOptions own = options;
        own.threads = threads;
        own.overlap = threads == 2;
        const Ending result = ending(test_world(), own, 23);
        EXPECT_EQ(result.variables, expected.variables) << shards << " shards, " << threads << " threads";
        EXPECT_EQ(result.loss, expected.loss) << shards << " shards, " << threads << " threads";
        EXPECT_EQ(result.evaluation.loss, expected.evaluation.loss)
            << shards << " shards, " << threads << " threads";
        EXPECT_EQ(result.evaluation.accuracy, expected.evaluation.accuracy)
            << shards << " shards, " << threads << " threads";
        EXPECT_EQ(result.evaluation.samples, 60);
      }
    }
}

/// In an evaluation samples are independent, so the batch size affects only the rounding of the sum.
TEST(TrainingRun, EvaluationCountsEverySampleOnce) {
  const TinyRunOptions options{.layers = kNormalised};
  const Ending expected = ending(test_world(), options, 60);
  EXPECT_GT(expected.evaluation.loss, 0);
  for (const std::int64_t batch : {1, 7, 59, 1000}) {
    const Ending result = ending(test_world(), options, batch);
    EXPECT_EQ(result.evaluation.samples, 60) << batch;
    EXPECT_NEAR(result.evaluation.loss, expected.evaluation.loss, 1e-6 * expected.evaluation.loss) << batch;
    EXPECT_NEAR(result.evaluation.accuracy, expected.evaluation.accuracy, 1e-12) << batch;
  }
}

}  // namespace
}  // namespace lockstep
