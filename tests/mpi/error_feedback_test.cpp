// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Error feedback of compressed sums: the bits of a recursive sum in one process that keeps a residual for
// each node; what was rounded away comes back; residuals move to reducers that cut the sums otherwise.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <utility>

#include "comm/gradient_reducer.h"
#include "core/range.h"
#include "core/thread_pool.h"
#include "support/gradient_leaves.h"
#include "support/mpi_world.h"

namespace lockstep {
namespace {

using Options = GradientReducer::Options;

float leaf(int shard, std::int64_t element) { return leaf_value(shard, element, 8); }

/// The sum in one process.
class Reference {
 public:
  Reference(int shards, std::int64_t count)
      : shards_(shards),
        count_(count),
        residuals_(static_cast<std::size_t>(ErrorFeedback::num_nodes(shards) * count)) {}

  std::vector<float> step(int number) {
    std::vector<float> totals;
    for (std::int64_t i = 0; i < count_; ++i) totals.push_back(node(0, shards_, i, number));
    return totals;
  }
  float residual(int node, std::int64_t element) const {
    return residuals_[static_cast<std::size_t>(node * count_ + element)];
  }

 private:
  float node(int first, int last, std::int64_t element, int step) {
    float sum = 0;
    int number = ErrorFeedback::leaf(first);
    if (last - first == 1) {
      sum = leaf(first, element + step);
    } else {
      int left = 1;
      while (2 * left < last - first) left *= 2;
      const float a = node(first, first + left, element, step), b = node(first + left, last, element, step);
      sum = a + b;
      number = ErrorFeedback::inner(first + left);
    }
    float& residual = residuals_[static_cast<std::size_t>(number * count_ + element)];
    const float whole = sum + residual;
    residual = kept(whole - kept(whole));
    return kept(whole);
  }

  int shards_;
  std::int64_t count_;
  std::vector<float> residuals_;
};

/// Fills the partials as a caller does, and sums them.
void run_step(GradientReducer& reducer, int shards, std::int64_t count, int step, float factor = 1) {
  const Range mine = shards_of_rank(test_world().rank(), test_world().size(), shards);
  const CounterPlan plan(shards, mine);
  std::vector<std::vector<float>> slots(static_cast<std::size_t>(plan.peak_slots()),
                                        std::vector<float>(static_cast<std::size_t>(count)));
  for (int i = 0; i < plan.num_leaves(); ++i) {
    const int shard = static_cast<int>(mine.first) + i;
    float* const gradient = slots[static_cast<std::size_t>(plan.leaf_slot(i))].data();
    for (std::int64_t at = 0; at < count; ++at) gradient[at] = factor * leaf(shard, at + step);
    reducer.feedback()->round(ErrorFeedback::leaf(shard), 0, count, gradient);
    for (const TreeStep& merge : plan.merges_after(i))
      reducer.feedback()->add(ErrorFeedback::inner(merge.middle), 0, count,
                              slots[static_cast<std::size_t>(merge.into)].data(),
                              slots[static_cast<std::size_t>(merge.from)].data());
  }
  for (int k = 0; k < reducer.num_partials(); ++k)
    std::ranges::copy(slots[static_cast<std::size_t>(k)], reducer.partial(k));
  for (int bucket = static_cast<int>(reducer.buckets().size()) - 1; bucket >= 0; --bucket)
    reducer.start(bucket);
  reducer.wait_all();
}

std::int64_t wrong_bits(const float* values, Range range, const std::vector<float>& expected) {
  std::int64_t wrong = 0;
  for (std::int64_t i = range.first; i < range.last; ++i)
    wrong += std::bit_cast<std::uint32_t>(values[i]) !=
                     std::bit_cast<std::uint32_t>(expected[static_cast<std::size_t>(i)])
                 ? 1
                 : 0;
  return wrong;
}

Options with_feedback(Options options) {
  std::get<HostTreeSum>(options.sum).nodes = HostTreeSum::Nodes::rounded_with_feedback;
  return options;
}

void check(int shards, std::int64_t count, int buckets, Options options, ThreadPool* pool = nullptr) {
  GradientReducer reducer(test_world(), pool, shards, count, cut(count, buckets), with_feedback(options));
  Reference reference(shards, count);
  for (int step = 0; step < 3; ++step) {
    run_step(reducer, shards, count, step);
    EXPECT_EQ(wrong_bits(reducer.result(), {0, count}, reference.step(step)), 0)
        << shards << " shards, " << count << " elements, " << buckets << " buckets, step " << step;
    reducer.feedback()->keep();
  }
}

TEST(ErrorFeedback, SameBitsAsOneProcess) {
  for (const int shards : {8, 5, 12, 1})
    for (const std::int64_t count : {std::int64_t{1}, std::int64_t{17}, std::int64_t{5003}})
      for (const int buckets : {1, 3})
        for (const bool overlap : {false, true})
          for (const bool shared : {false, true})
            check(shards, count, buckets, {.sum = HostTreeSum{.shared_memory = shared}, .overlap = overlap});
}

TEST(ErrorFeedback, RandomShardsAndSizes) {
  std::mt19937 generator(12);  // the same numbers on all ranks
  for (int i = 0; i < 20; ++i) {
    const auto shards = static_cast<int>(1 + generator() % 40);
    const auto count = static_cast<std::int64_t>(1 + generator() % 9000);
    const auto buckets = static_cast<int>(1 + generator() % 4);
    const bool overlap = generator() % 2 == 0, shared = generator() % 2 == 0;
    check(shards, count, buckets, {.sum = HostTreeSum{.shared_memory = shared}, .overlap = overlap});
  }
}

TEST(ErrorFeedback, InPiecesBlocksAndThreads) {
  ThreadPool pool(3);
  for (const int shards : {8, 5}) {
    check(shards, 30003, 2, {.sum = HostTreeSum{.piece_bytes = 1024}});
    for (const bool shared : {false, true})
      check(shards, 400003, 1, {.sum = HostTreeSum{.shared_memory = shared}}, &pool);
  }
}

/// Without keep() a step is computed once more from the same residuals.
TEST(ErrorFeedback, AStepThatIsNotKeptLeavesNothing) {
  const std::int64_t count = 5003;
  GradientReducer reducer(test_world(), nullptr, 8, count, cut(count, 2), with_feedback({}));
  Reference reference(8, count);
  run_step(reducer, 8, count, 0);
  reference.step(0);
  reducer.feedback()->keep();
  const std::vector<float> second = reference.step(1);
  for (const float factor : {3.0F, std::numeric_limits<float>::quiet_NaN(), 1.0F})
    run_step(reducer, 8, count, 1, factor);
  EXPECT_EQ(wrong_bits(reducer.result(), {0, count}, second), 0);
}

TEST(ErrorFeedback, NumbersThatAreNotFiniteLeaveNoResidual) {
  const std::int64_t count = 5003;
  GradientReducer reducer(test_world(), nullptr, 8, count, cut(count, 2), with_feedback({}));
  for (const float factor : {INFINITY, std::numeric_limits<float>::quiet_NaN()}) {
    run_step(reducer, 8, count, 0, factor);
    EXPECT_FALSE(std::isfinite(reducer.result()[7]));
    reducer.feedback()->keep();
  }
  run_step(reducer, 8, count, 1);
  EXPECT_EQ(wrong_bits(reducer.result(), {0, count}, Reference(8, count).step(1)), 0);
}

/// The same small gradient 64 times: rounded each time it is off by up to 64 x 0.2 %; with what comes back,
/// by one rounding.
TEST(ErrorFeedback, WhatIsRoundedAwayComesBack) {
  const std::int64_t count = 300;
  constexpr int kSteps = 64;
  GradientReducer plain(test_world(), nullptr, 8, count, {{0, count}},
                        {.sum = HostTreeSum{.nodes = HostTreeSum::Nodes::rounded}});
  GradientReducer reducer(test_world(), nullptr, 8, count, {{0, count}}, with_feedback({}));
  std::vector<double> exact(static_cast<std::size_t>(count)), sums = exact;
  std::vector<double> magnitude = exact;
  for (std::int64_t i = 0; i < count; ++i)
    for (int shard = 0; shard < 8; ++shard) {
      exact[static_cast<std::size_t>(i)] += kSteps * static_cast<double>(leaf(shard, i));
      magnitude[static_cast<std::size_t>(i)] += std::fabs(static_cast<double>(leaf(shard, i)));
    }
  std::vector<float> first;
  for (int step = 0; step < kSteps; ++step) {
    run_step(reducer, 8, count, 0);
    reducer.feedback()->keep();
    if (step == 0) first.assign(reducer.result(), reducer.result() + count);
    for (std::int64_t i = 0; i < count; ++i)
      sums[static_cast<std::size_t>(i)] += static_cast<double>(reducer.result()[i]);
  }
  double error = 0, without = 0;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    // The first step has no residuals: its error is that of each step without them.
    without = std::max(without, std::fabs(kSteps * static_cast<double>(first[i]) - exact[i]) / magnitude[i]);
    error = std::max(error, std::fabs(sums[i] - exact[i]) / magnitude[i]);
  }
  EXPECT_GT(without, 0.1);
  EXPECT_LT(error, 0.03);
}

/// All elements of all nodes, each from the one rank that has it.
std::vector<float> all_residuals(const GradientReducer& reducer, int shards, std::int64_t count) {
  std::vector<float> mine(static_cast<std::size_t>(ErrorFeedback::num_nodes(shards) * count)),
      all(mine.size());
  std::vector<int> ranks(mine.size());
  for (const NodePart& part : reducer.node_parts()) {
    const auto first = static_cast<std::size_t>(part.node * count + part.elements.first);
    for (auto i = first; i < first + static_cast<std::size_t>(part.elements.size()); ++i) ++ranks[i];
    if (part.rank == test_world().rank()) reducer.feedback()->read(part.node, part.elements, &mine[first]);
  }
  EXPECT_TRUE(std::ranges::all_of(ranks, [](int number) { return number == 1; })) << shards << " shards";
  std::vector<float> gathered(mine.size() * static_cast<std::size_t>(test_world().size()));
  test_world().allgather(mine.data(), mine.size() * sizeof(float), gathered.data(), "residuals");
  for (std::size_t i = 0; i < gathered.size(); ++i) all[i % mine.size()] += gathered[i];
  return all;
}

TEST(ErrorFeedback, ResidualsMoveToOtherReducers) {
  const std::int64_t count = 9007;
  for (const int shards : {8, 5, 12}) {
    const auto ownership = [&](int buckets) {
      return std::make_shared<Ownership>(cut(count, buckets), test_world().size(), shards,
                                         [](std::int64_t i) { return (i + 47) / 48 * 48; });
    };
    const std::vector<std::pair<int, Options>> forms = {
        {2, {}},
        {1, {.sum = HostTreeSum{.shared_memory = true}}},
        {3, {.sum = HostTreeSum{.piece_bytes = 1024}}},
        {3, {.sum = HostTreeSum{.ownership = ownership(3)}}},
        {2, {.sum = HostTreeSum{.ownership = ownership(2), .shared_memory = true}}}};
    Reference reference(shards, count);
    std::vector<float> residuals(static_cast<std::size_t>(ErrorFeedback::num_nodes(shards) * count));
    for (int step = 0; step < static_cast<int>(forms.size()); ++step) {
      const auto& [buckets, options] = forms[static_cast<std::size_t>(step)];
      GradientReducer reducer(test_world(), nullptr, shards, count, cut(count, buckets),
                              with_feedback(options));
      for (const NodePart& part : reducer.node_parts())
        if (part.rank == test_world().rank())
          reducer.feedback()->write(
              part.node, part.elements,
              &residuals[static_cast<std::size_t>(part.node * count + part.elements.first)]);
      run_step(reducer, shards, count, step);
      const std::vector<float> expected = reference.step(step);
      if (const auto parts = options.ownership()) {
        for (const Range& part : parts->parts(test_world().rank()))
          EXPECT_EQ(wrong_bits(reducer.result(), part, expected), 0) << shards << " shards, step " << step;
      } else {
        EXPECT_EQ(wrong_bits(reducer.result(), {0, count}, expected), 0)
            << shards << " shards, step " << step;
      }
      reducer.feedback()->keep();
      residuals = all_residuals(reducer, shards, count);
      std::int64_t wrong = 0;
      for (int node = 0; node < ErrorFeedback::num_nodes(shards); ++node)
        for (std::int64_t i = 0; i < count; ++i)
          wrong +=
              residuals[static_cast<std::size_t>(node * count + i)] != reference.residual(node, i) ? 1 : 0;
      EXPECT_EQ(wrong, 0) << shards << " shards, step " << step;
    }
  }
}

}  // namespace
}  // namespace lockstep
