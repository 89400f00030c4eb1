// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Which samples a run is given: random sets, choices, orders, batches, microshards, ranks, epochs and places
// where it is stopped and goes on with another number of ranks. The samples that are delivered are counted
// and compared with the definitions in docs/data_selection.md, which are written here a second time, with
// tables.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "core/range.h"
#include "data/choice_options.h"
#include "data/length_buckets.h"
#include "data/step_plan.h"

namespace lockstep {
namespace {

using Numbers = std::vector<std::int64_t>;
using Counts = std::map<std::int64_t, std::int64_t>;

struct RandomRun {
  std::mt19937 random;
  StepPlanSpec spec;
  Numbers chosen;                      ///< ascending
  std::vector<std::int32_t> labels;    ///< by sample
  std::map<std::int32_t, int> shares;  ///< of the classes of chosen samples; empty: not balanced

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
    if (number(0, 2) == 0)
      balance();
    else if (number(0, 2) == 0)
      bucket();
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

  void balance() {
    labels.resize(static_cast<std::size_t>(spec.num_samples));
    for (std::int32_t& label : labels) label = static_cast<std::int32_t>(number(0, 3) * number(0, 2) - 1);
    for (const std::int64_t sample : chosen)
      shares.try_emplace(labels[static_cast<std::size_t>(sample)], static_cast<int>(number(0, 3)));
    shares.begin()->second += 1;
    std::vector<double> numbers;
    for (const auto& [label, share] : shares) numbers.push_back(share);
    spec.quotas = std::make_shared<const ClassQuotas>(ClassLists(labels, spec.choice.get()), numbers,
                                                      static_cast<std::int64_t>(chosen.size()) * spec.repeat);
    spec.shuffle = Shuffle::samples;
  }

  void bucket() {
    std::vector<std::int32_t> lengths(static_cast<std::size_t>(spec.num_samples));
    for (std::int32_t& length : lengths) length = static_cast<std::int32_t>(number(0, 30));
    const Numbers bounds = number(0, 1) == 0 ? Numbers{number(0, 30)} : Numbers{5, 10, 11, 25};
    spec.buckets = std::make_shared<const LengthBuckets>(lengths, bounds, spec.choice.get(), spec.repeat);
    spec.shuffle = Shuffle::samples;
  }

  /// The places of each class in an epoch: largest remainders, in whole numbers.
  std::map<std::int32_t, std::int64_t> quotas() const {
    const std::int64_t places = static_cast<std::int64_t>(chosen.size()) * spec.repeat;
    std::int64_t sum = 0, left = places;
    for (const auto& [label, share] : shares) sum += share;
    std::map<std::int32_t, std::int64_t> quotas;
    for (const auto& [label, share] : shares) left -= quotas[label] = places * share / sum;
    for (; left > 0; --left) {
      std::int32_t best = -1;
      std::int64_t most = 0;
      for (const auto& [label, share] : shares) {
        const std::int64_t rest = places * share % sum;
        if (rest > most && quotas[label] == places * share / sum) {
          best = label;
          most = rest;
        }
      }
      ++quotas[best];
    }
    return quotas;
  }

  /// Checks how often an epoch that is neither shortened nor filled has each sample.
  void expect_right(const Counts& counts, unsigned seed) const {
    if (shares.empty()) {
      ASSERT_EQ(counts, wanted()) << "case " << seed;
      return;
    }
    std::map<std::int32_t, std::int64_t> uses, sizes;
    for (const std::int64_t sample : chosen) ++sizes[labels[static_cast<std::size_t>(sample)]];
    const auto quota = quotas();
    for (const auto& [sample, count] : counts) uses[labels[static_cast<std::size_t>(sample)]] += count;
    for (const auto& [label, places] : quota) ASSERT_EQ(uses[label], places) << "case " << seed;
    for (const std::int64_t sample : chosen) {
      const std::int32_t label = labels[static_cast<std::size_t>(sample)];
      const std::int64_t count = counts.contains(sample) ? counts.at(sample) : 0;
      ASSERT_GE(count, quota.at(label) / sizes[label]) << "case " << seed;
      ASSERT_LE(count, (quota.at(label) + sizes[label] - 1) / sizes[label]) << "case " << seed;
    }
  }

  /// How often an epoch has each sample, apart from what is dropped or filled.
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
  for (unsigned seed = 900; seed < 1400; ++seed) {
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
      Counts counts;
      for (const std::int64_t sample : delivered) ++counts[sample];
      if (std::ssize(delivered) == order) {
        run.expect_right(counts, seed);
        if (HasFatalFailure()) return;
      } else {  // dropped
        ASSERT_EQ(spec.last_batch, LastBatch::drop) << "case " << seed;
        ASSERT_LT(order - std::ssize(delivered), spec.batch_size) << "case " << seed;
        Counts wanted = run.wanted();
        if (run.shares.empty()) {
          for (const auto& [sample, count] : counts) ASSERT_LE(count, wanted[sample]) << "case " << seed;
        }
      }
    }
  }
}

// A class of 7 samples with 3 places, one with 5 samples and 12 places.
TEST(ClassQuotas, SamplesTakeTurnsOverTheEpochs) {
  const std::vector<std::int32_t> labels = {4, 9, 4, 4, 9, 9, 4, 4, 4, 9, 9, 4};
  const ClassQuotas quotas(ClassLists(labels, nullptr), std::vector<double>{1, 4}, 15);
  ASSERT_EQ(quotas.quota(0), 3);
  ASSERT_EQ(quotas.quota(1), 12);
  Counts counts;
  std::map<std::int64_t, std::int64_t> last;
  for (std::int64_t epoch = 0; epoch < 35; ++epoch)
    for (std::int64_t place = 0; place < 15; ++place) {
      const std::int64_t sample = quotas.sample_at(3, epoch, place);
      ++counts[sample];
      if (last.contains(sample)) {
        EXPECT_LE(epoch - last[sample], 3) << "waits for more than ceil(7 / 3) epochs";
      }
      last[sample] = epoch;
    }
  for (std::int64_t sample = 0; sample < 12; ++sample)
    EXPECT_EQ(counts[sample], labels[static_cast<std::size_t>(sample)] == 4 ? 15 : 84) << sample;
}

TEST(ClassQuotas, LargestRemaindersGetTheRest) {
  EXPECT_EQ(quotas_of(10, std::vector<double>{1, 1, 1}), (Numbers{4, 3, 3}));
  EXPECT_EQ(quotas_of(10, std::vector<double>{0, 1, 2.5}), (Numbers{0, 3, 7}));
  EXPECT_EQ(quotas_of(1, std::vector<double>{1, 1, 1000}), (Numbers{0, 0, 1}));
}

TEST(LengthBuckets, BatchesHaveSamplesOfOneBucketOrOfNeighbours) {
  std::mt19937 random(5);
  const std::int64_t n = 1003, batch_size = 20;
  std::vector<std::int32_t> lengths(n);
  for (std::int32_t& length : lengths) length = std::uniform_int_distribution(0, 40)(random);
  const Numbers bounds{5, 20, 33};
  const auto buckets = std::make_shared<const LengthBuckets>(lengths, bounds, nullptr, 1);
  ASSERT_EQ(buckets->buckets().size(), 4U);
  EXPECT_EQ(buckets->buckets()[1].shortest, 6);
  EXPECT_EQ(buckets->buckets()[1].longest, 20);
  const StepPlan plan(
      {.num_samples = n, .batch_size = batch_size, .shards = 3, .seed = 7, .buckets = buckets});
  std::vector<Numbers> orders;
  std::map<std::int64_t, int> last_buckets;
  for (std::int64_t epoch = 0; epoch < 40; ++epoch) {
    int mixed = 0;
    Numbers order(n);
    plan.samples(epoch, 0, order);
    for (std::int64_t first = 0; first < n; first += batch_size) {
      std::map<std::int64_t, int> seen;
      for (std::int64_t i = first; i < std::min(first + batch_size, n); ++i) {
        const std::int64_t length = buckets->length(order[static_cast<std::size_t>(i)]);
        ++seen[std::ranges::lower_bound(bounds, length) - bounds.begin()];
      }
      mixed += seen.size() > 1 ? 1 : 0;
      ASSERT_LE(seen.rbegin()->first - seen.begin()->first, 1);
      if (first + batch_size > n) ++last_buckets[seen.begin()->first];
    }
    EXPECT_LE(mixed, 3);
    orders.push_back(std::move(order));
  }
  EXPECT_GE(last_buckets.size(), 3U) << "the smaller batch has any bucket";
  // Neighbours of one epoch are none in the next one, and batches of one length come at any time.
  std::map<std::int64_t, int> first_buckets;
  for (const Numbers& order : orders) ++first_buckets[buckets->length(order[0]) / 10];
  EXPECT_GE(first_buckets.size(), 3U);
  Numbers one(orders[0].begin(), orders[0].begin() + batch_size), two = one;
  const auto place = std::ranges::find(orders[1], one[0]) - orders[1].begin();
  const auto begin = orders[1].begin() + place / batch_size * batch_size;
  two.assign(begin, std::min(begin + batch_size, orders[1].end()));
  std::ranges::sort(one);
  std::ranges::sort(two);
  EXPECT_NE(one, two);
}

}  // namespace
}  // namespace lockstep
