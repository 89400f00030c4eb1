// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Which samples a run is given: random sets, choices, orders, batches, microshards, ranks, epochs and places
// where it is stopped and goes on with another number of ranks. The samples that are delivered are counted
// and compared with the definitions in docs/data.md, which are written here a second time, with tables.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "data/choice_options.h"
#include "data/step_plan.h"

namespace lockstep {
namespace {

using Numbers = std::vector<std::int64_t>;
using Counts = std::map<std::int64_t, std::int64_t>;

struct RandomRun {
  std::mt19937 random;
  StepPlanSpec spec;
  Numbers chosen;  ///< ascending

  explicit RandomRun(unsigned seed) : random(seed) {
    std::vector<BlockGrid::Piece> pieces;
    for (std::int64_t file = 0, files = number(1, 4); file < files; ++file) {
      pieces.push_back({spec.num_samples, number(0, 30)});
      spec.num_samples += number(1, 60);
    }
    BlockGrid grid(pieces, spec.num_samples, number(1, 12));
    choose();
    const auto size = static_cast<std::int64_t>(chosen.size());
    spec.repeat = number(1, 3);
    spec.last_batch = static_cast<LastBatch>(number(0, 2));
    const std::int64_t most =
        spec.last_batch == LastBatch::fill ? 3 * size * spec.repeat : size * spec.repeat;
    spec.batch_size = number(1, number(0, 4) == 0 ? most : std::min<std::int64_t>(most, 20));
    spec.shards = number(1, 8);
    spec.seed = static_cast<std::uint64_t>(number(0, 1000));
    spec.shuffle = static_cast<Shuffle>(number(0, 2));
    spec.window_blocks = number(1, 5);
    if (spec.shuffle == Shuffle::blocks) spec.blocks = spec.choice ? spec.choice->blocks(grid) : grid;
  }

  std::int64_t number(std::int64_t first, std::int64_t last) {
    return std::uniform_int_distribution(first, last)(random);
  }

  /// A part, and samples of it. The definition: the units of a part are those in a range of the permuted
  /// units.
  void choose() {
    using Part = ChoiceOptions::Part;
    ChoiceOptions options{.part = static_cast<Part>(number(0, 3)), .split_seed = 5};
    options.split_unit = number(1, 4);
    const std::int64_t units = units_of(spec.num_samples, options.split_unit);
    options.first_share = static_cast<double>(number(0, units - 1)) / static_cast<double>(units);
    options.last_share =
        options.first_share + static_cast<double>(number(1, 3)) * (1 - options.first_share) / 3;
    options.holdout = 0.5;
    options.folds = number(2, 5);
    options.fold = number(0, options.folds - 1);
    const bool evaluation = number(0, 1) == 1;
    try {
      spec.choice = choose_samples(options, evaluation, spec.num_samples);
      const std::int64_t size = spec.choice ? spec.choice->size() : spec.num_samples;
      options.skip = number(0, size / 2);
      if (number(0, 1) == 1) options.take = number(1, size - options.skip);
      spec.choice = choose_samples(options, evaluation, spec.num_samples);
    } catch (const Error&) {
      spec.choice = nullptr;  // too few samples for the part
    }
    chosen.resize(static_cast<std::size_t>(spec.choice ? spec.choice->size() : spec.num_samples));
    for (std::size_t i = 0; i < chosen.size(); ++i)
      chosen[i] = spec.choice ? spec.choice->at(static_cast<std::int64_t>(i)) : static_cast<std::int64_t>(i);
    std::ranges::sort(chosen);
  }

  /// How often an epoch delivers each sample, apart from what is dropped or filled.
  Counts wanted() const {
    Counts counts;
    for (const std::int64_t sample : chosen) counts[sample] = spec.repeat;
    return counts;
  }
};

/// The samples of a batch as `ranks` ranks fetch them: each its own microshards.
Numbers fetched(const StepPlan& plan, const Batch& batch, std::int64_t ranks) {
  Numbers all(static_cast<std::size_t>(batch.count), -1);
  const std::int64_t shards = plan.spec().shards;
  for (std::int64_t rank = ranks - 1; rank >= 0; --rank)
    for (std::int64_t shard = rank * shards / ranks; shard < (rank + 1) * shards / ranks; ++shard) {
      const Range range = plan.shard_range(batch.count, shard);
      plan.samples(batch.epoch, batch.first + range.first,
                   std::span(all).subspan(static_cast<std::size_t>(range.first),
                                          static_cast<std::size_t>(range.size())));
    }
  return all;
}

TEST(Choosing, AChoiceHasEachSampleOnce) {
  for (unsigned seed = 0; seed < 2000; ++seed) {
    const RandomRun run(seed);
    ASSERT_EQ(std::ranges::adjacent_find(run.chosen), run.chosen.end()) << "case " << seed;
    ASSERT_TRUE(run.chosen.front() >= 0 && run.chosen.back() < run.spec.num_samples) << "case " << seed;
  }
}

TEST(Choosing, EachEpochDeliversWhatIsDefinedOnAnyRanksAndAfterResumption) {
  for (unsigned seed = 0; seed < 1500; ++seed) {
    RandomRun run(seed);
    const StepPlanSpec& spec = run.spec;
    const StepPlan whole(spec);
    Cursor cursor;
    while (cursor.epoch < 2) {
      const std::int64_t epoch = cursor.epoch;
      Numbers delivered;
      std::int64_t steps = 0;
      for (; cursor.epoch == epoch; ++steps) {
        const Batch batch = whole.batch(cursor);
        // A job that was started at this step, with another number of ranks.
        const StepPlan job(spec);
        const Numbers samples = fetched(job, job.batch(cursor), run.number(1, spec.shards));
        ASSERT_EQ(samples, fetched(whole, batch, 1)) << "case " << seed;
        delivered.insert(delivered.end(), samples.begin(), samples.end());
        cursor = whole.advance(cursor);
      }
      ASSERT_EQ(steps, whole.steps_per_epoch()) << "case " << seed;
      ASSERT_EQ(std::ssize(delivered), whole.samples_per_epoch()) << "case " << seed;
      // Filled: from the beginning of the same order.
      const std::int64_t order = whole.order_size();
      for (std::int64_t at = order; at < std::ssize(delivered); ++at)
        ASSERT_EQ(delivered[static_cast<std::size_t>(at)], delivered[static_cast<std::size_t>(at % order)])
            << "case " << seed;
      if (std::ssize(delivered) > order) delivered.resize(static_cast<std::size_t>(order));
      Counts counts, wanted = run.wanted();
      for (const std::int64_t sample : delivered) ++counts[sample];
      if (std::ssize(delivered) == order) {
        ASSERT_EQ(counts, wanted) << "case " << seed;
      } else {  // dropped
        ASSERT_EQ(spec.last_batch, LastBatch::drop) << "case " << seed;
        ASSERT_LT(order - std::ssize(delivered), spec.batch_size) << "case " << seed;
        for (const auto& [sample, count] : counts) ASSERT_LE(count, wanted[sample]) << "case " << seed;
      }
    }
  }
}

}  // namespace
}  // namespace lockstep
