// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The record of a step is the same on any number of ranks and threads, with fused, collective and plain
// layers and with empty microshards. A changed weight appears first in its own layer. Observation does not
// change bits.
#include <gtest/gtest.h>

#include <algorithm>

#include "comm/self_communicator.h"
#include "core/range.h"
#include "session/step_recorder.h"
#include "support/mpi_world.h"
#include "support/tiny_run.h"
#include "train/step_sums.h"

namespace lockstep {
namespace {

constexpr const char* kNormalised = R"(
- conv2d: {name: c1, filters: 5, kernel: 3}
- batch_norm: {name: bn1}
- relu: {name: r1}
- conv2d: {name: c2, filters: 5, kernel: 3, bias: false}
- batch_norm: {name: bn2, group: 2}
- add: {name: sum, inputs: [bn2, r1]}
- relu: {name: r2}
- max_pool: {name: pool}
- flatten
- dropout: {name: drop, rate: 0.2}
- dense: {name: logits, units: 3}
)";
constexpr const char* kPlain =
    "[flatten, dense: {name: d1, units: 9}, relu: {name: r1}, dropout: {name: drop, rate: 0.5}, dense: "
    "{name: logits, units: 3}]";

struct Planted {
  std::string variable;  ///< empty: none
  int rank = -1;         ///< the rank that changes it; -1: all
};

/// The record of the fourth step: the last and smaller one of an epoch, in which microshards of 16 shards are
/// empty.
StepRecord record(Communicator& world, const TinyRunOptions& options, const Planted& planted = {}) {
  TinyRun run(world, options);
  StepRecorder recorder(run.context(), run.trainer().executor().calls());
  for (int i = 0; i < 3; ++i) run.trainer().minimize();
  if (!planted.variable.empty() && (planted.rank < 0 || planted.rank == world.rank()))
    run.variables().value(run.variables().find(planted.variable))[0] *= 1.25F;
  run.trainer().add_observer(recorder);
  StepResult result = run.trainer().compute();
  recorder.summed(run.trainer().sums().gradients(), run.trainer().sums().sparse());
  run.trainer().apply(true);
  run.trainer().remove_observer(recorder);
  StepRecord made = recorder.gather(run.control(), true);
  made.step = result.step;
  return made;
}

/// The text of the first differing row; "none" if the records are equal.
std::string first_difference(const StepRecord& a, const StepRecord& b) {
  const auto found = differences(a, b);
  return found.empty() ? "none" : row_text(a.rows[found.front().row]);
}

TEST(StepRecord, SameOnAnyRanksAndThreads) {
  SelfCommunicator self;
  for (const char* layers : {kNormalised, kPlain})
    for (const int shards : {4, 6, 16}) {
      const TinyRunOptions options{
          .layers = layers, .optimizer = "momentum: {learning_rate: 0.05}", .shards = shards};
      const StepRecord expected = record(self, options);
      ASSERT_EQ(expected.microshards(), shards);
      EXPECT_EQ(std::ranges::count(expected.samples, 0), shards == 16 ? 4 : 0);
      for (const int threads : {1, 2}) {
        TinyRunOptions own = options;
        own.threads = threads;
        own.overlap = threads == 2;
        const StepRecord mine = record(test_world(), own);
        EXPECT_EQ(mine.ranks(), test_world().size());
        EXPECT_EQ(first_difference(expected, mine), "none") << shards << " shards, " << threads << " threads";
      }
    }
}

/// Every row has a value for every microshard that has samples.
TEST(StepRecord, HasAHashOfEveryValue) {
  for (const char* layers : {kNormalised, kPlain})
    for (const int shards : {4, 16}) {
      const StepRecord made = record(test_world(), {.layers = layers, .shards = shards});
      std::vector<std::string> rows;
      for (const RecordRow& row : made.rows) {
        rows.push_back(row_text(row));
        for (std::size_t place = 0; place < row.hashes.size(); ++place)
          EXPECT_EQ(row.hashes[place] != 0, !row.per_microshard || made.samples[place] > 0)
              << row_text(row) << ", " << place;
      }
      std::ranges::sort(rows);
      EXPECT_EQ(std::ranges::adjacent_find(rows), rows.end())
          << "two rows of one name: " << *std::ranges::adjacent_find(rows);
    }
}

TEST(StepRecord, ListsLayersInExecutionOrder) {
  const StepRecord made = record(test_world(), {.layers = kNormalised});
  std::vector<std::string> rows;
  for (const RecordRow& row : made.rows)
    if (row.stage != "update" && row.stage != "sum") rows.push_back(row_text(row));
  EXPECT_EQ(rows, (std::vector<std::string>{
                      "input: features",
                      "forward of c1: output",
                      "forward of bn1 + r1: statistics of all microshards",
                      "forward of bn1 + r1: output",
                      "forward of c2: output",
                      "forward of bn2 + sum + r2: statistics of all microshards",
                      "forward of bn2 + sum + r2: output",
                      "forward of pool: output",
                      "forward of drop: output",
                      "forward of logits: output",
                      "loss: loss and correct samples",
                      "backward: gradient of the loss",
                      "backward of logits: gradient of logits/kernel",
                      "backward of logits: gradient of logits/bias",
                      "backward of logits: gradient of its input from drop",
                      "backward of drop: gradient of its input from pool",
                      "backward of pool: gradient of its input from bn2",
                      "backward of bn2 + sum + r2: gradient of bn2/gamma",
                      "backward of bn2 + sum + r2: gradient of bn2/beta",
                      "backward of bn2 + sum + r2: gradient sums of all microshards",
                      "backward of bn2 + sum + r2: gradient of its input from c2",
                      "backward of bn2 + sum + r2: gradient of its input from bn1",
                      "backward of c2: gradient of c2/kernel",
                      "backward of c2: gradient of its input from bn1",
                      "backward of bn1 + r1: gradient of bn1/gamma",
                      "backward of bn1 + r1: gradient of bn1/beta",
                      "backward of bn1 + r1: gradient sums of all microshards",
                      "backward of bn1 + r1: gradient of its input from c1",
                      "backward of c1: gradient of c1/kernel",
                      "backward of c1: gradient of c1/bias",
                  }));
}

TEST(StepRecord, ChangedWeightAppearsFirstInItsLayer) {
  SelfCommunicator self;
  const TinyRunOptions options{.layers = kNormalised};
  const StepRecord expected = record(test_world(), options);
  const auto planted = [&](const char* variable) {
    return first_difference(expected, record(self, options, {.variable = variable}));
  };
  EXPECT_EQ(planted("c1/kernel"), "forward of c1: output");
  EXPECT_EQ(planted("bn1/gamma"), "forward of bn1 + r1: output");
  EXPECT_EQ(planted("c2/kernel"), "forward of c2: output");
  EXPECT_EQ(planted("logits/kernel"), "forward of logits: output");
  EXPECT_EQ(planted("bn1/moving_mean"), "update: bn1/moving_mean");  // training does not read it
}

/// Like a broken memory cell: only the last rank has the change. Its own microshards differ, in that layer.
TEST(StepRecord, ChangedWeightOfARankAppearsInItsShards) {
  SelfCommunicator self;
  const TinyRunOptions options{.layers = kPlain};
  const int last = test_world().size() - 1;
  const StepRecord broken = record(test_world(), options, {.variable = "logits/bias", .rank = last});
  const auto found = differences(broken, record(self, options));
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(row_text(broken.rows[found.front().row]), "forward of logits: output");
  const Range own = shards_of_rank(last, test_world().size(), options.shards);
  std::vector<int> expected;
  for (std::int64_t shard = own.first; shard < own.last; ++shard) expected.push_back(static_cast<int>(shard));
  EXPECT_EQ(found.front().places, expected);
  if (last == 0) return;
  // After the update only that rank has another logits/bias, and the record shows it.
  const auto update = std::ranges::find(broken.rows, std::string("update: logits/bias"), row_text);
  ASSERT_NE(update, broken.rows.end());
  EXPECT_EQ(update->hashes.size(), static_cast<std::size_t>(test_world().size()));
}

TEST(StepRecord, ObservationDoesNotChangeBits) {
  for (const char* layers : {kNormalised, kPlain}) {
    const TinyRunOptions options{.layers = layers, .threads = 2, .overlap = true};
    TinyRun plain(test_world(), options), observed(test_world(), options);
    StepRecorder recorder(observed.context(), observed.trainer().executor().calls());
    observed.trainer().add_observer(recorder);
    for (int i = 0; i < 5; ++i) {
      EXPECT_EQ(plain.trainer().minimize().loss, observed.trainer().minimize().loss);
      EXPECT_EQ(plain.variables().hash(), observed.variables().hash());
    }
  }
}

}  // namespace
}  // namespace lockstep
