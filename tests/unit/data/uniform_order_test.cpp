// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// All orders of few numbers are equally likely: statistics over many keys, with fixed seeds. Bounds are five
// standard deviations of what chance gives.
#include "data/uniform_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <vector>

#include "core/philox.h"

namespace lockstep {
namespace {

using Numbers = std::vector<std::int64_t>;
using Key = KeyedPermutation::Key;

constexpr int kTrials = 20000;
constexpr double kDeviations = 5;

Key key_of(int trial) {
  return {static_cast<std::uint64_t>(trial / 50), philox_purpose("test"),
          static_cast<std::uint32_t>(trial % 50)};
}

template <typename Order>
Numbers numbers_of(const Order& permutation, const Key& key) {
  Numbers numbers(static_cast<std::size_t>(permutation.count()));
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = permutation.at(key, static_cast<std::int64_t>(i));
  return numbers;
}

bool is_even(const Numbers& numbers) {
  std::vector<bool> seen(numbers.size());
  std::size_t cycles = 0;
  for (std::size_t first = 0; first < numbers.size(); ++first) {
    if (seen[first]) continue;
    ++cycles;
    for (std::size_t i = first; !seen[i]; i = static_cast<std::size_t>(numbers[i])) seen[i] = true;
  }
  return (numbers.size() - cycles) % 2 == 0;
}

/// How far chi-squared of counts with the same expectation is above its mean, in standard deviations.
double excess(const std::vector<double>& counts) {
  const double expected =
      std::accumulate(counts.begin(), counts.end(), 0.0) / static_cast<double>(counts.size());
  double sum = 0;
  for (const double count : counts) sum += (count - expected) * (count - expected) / expected;
  const auto freedom = static_cast<double>(counts.size() - 1);
  return (sum - freedom) / std::sqrt(2 * freedom);
}

/// What the orders of an epoch must not show.
struct Statistics {
  double neighbours;  ///< excess of the differences of neighbours
  double places;      ///< excess of (place, number)
  double partners;    ///< excess of the pairs in batches of two
  double parity;      ///< deviations of the share of even permutations from a half
};

template <typename Order>
Statistics statistics_of(std::int64_t count) {
  const Order permutation(count);
  const auto n = static_cast<std::size_t>(count);
  std::vector<double> differences(n - 1), places(n * n), partners(n * (n - 1) / 2);
  int even = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    const Numbers numbers = numbers_of(permutation, key_of(trial));
    for (std::size_t i = 0; i < n; ++i) {
      const auto number = static_cast<std::size_t>(numbers[i]);
      places[i * n + number] += 1;
      if (i + 1 == n) continue;
      const auto next = static_cast<std::size_t>(numbers[i + 1]);
      differences[(next + n - number) % n - 1] += 1;
      const std::size_t low = std::min(number, next), high = std::max(number, next);
      if (i % 2 == 0) partners[high * (high - 1) / 2 + low] += 1;
    }
    even += is_even(numbers) ? 1 : 0;
  }
  const auto over = [](const std::vector<double>& counts) { return counts.size() < 2 ? 0 : excess(counts); };
  return {over(differences), excess(places), over(partners),
          std::abs(even - kTrials / 2.0) / std::sqrt(kTrials / 4.0)};
}

TEST(UniformOrder, OrdersOfFewNumbersAreAlike) {
  for (std::int64_t count = 2; count <= 100; count += count < 32 ? 1 : count < 60 || count > 68 ? 4 : 1) {
    const Statistics found = statistics_of<UniformOrder>(count);
    EXPECT_LT(found.neighbours, kDeviations) << count;
    EXPECT_LT(found.places, kDeviations) << count;
    EXPECT_LT(found.partners, kDeviations) << count;
    EXPECT_LT(found.parity, kDeviations) << count;
  }
}

/// KeyedPermutation is not good enough for them, or else the test above shows nothing.
TEST(UniformOrder, TheStatisticsShowWhatACipherDoes) {
  const Statistics found = statistics_of<KeyedPermutation>(64);
  EXPECT_GT(found.neighbours, 2 * kDeviations);
  EXPECT_GT(found.partners, kDeviations);
  EXPECT_GT(found.parity, 2 * kDeviations) << "none is odd";
}

TEST(UniformOrder, EveryOrderOfFiveNumbersIsAsFrequent) {
  std::map<Numbers, double> seen;
  const UniformOrder permutation(5);
  for (int trial = 0; trial < kTrials; ++trial) seen[numbers_of(permutation, key_of(trial))] += 1;
  ASSERT_EQ(seen.size(), 120U);
  std::vector<double> counts;
  for (const auto& [order, count] : seen) counts.push_back(count);
  EXPECT_LT(excess(counts), kDeviations);
}

/// Neighbouring epochs have nothing in common: where a number is does not depend on where it was.
TEST(UniformOrder, OrdersOfSuccessiveEpochsAreIndependent) {
  const std::int64_t count = 40;
  const auto n = static_cast<std::size_t>(count);
  const UniformOrder permutation(count);
  std::vector<double> moves(n);
  for (int trial = 0; trial + 1 < kTrials; ++trial) {
    Key key = key_of(trial), next = key;
    next.step += 1;
    for (std::int64_t number = 0; number < count; ++number)
      moves[static_cast<std::size_t>(permutation.index_of(next, number) - permutation.index_of(key, number) +
                                     count) %
            n] += 1;
  }
  EXPECT_LT(excess(moves), kDeviations);
}

template <typename Order>
void expect_inverse() {
  for (const std::int64_t count : {1, 2, 3, 63, 64, 65, 255, 256, 257, 1000})
    for (int trial = 0; trial < 3; ++trial) {
      const Order permutation(count);
      const Key key = key_of(trial);
      Numbers numbers = numbers_of(permutation, key);
      for (std::int64_t i = 0; i < count; ++i)
        ASSERT_EQ(permutation.index_of(key, numbers[static_cast<std::size_t>(i)]), i) << count;
      std::ranges::sort(numbers);
      for (std::int64_t i = 0; i < count; ++i) ASSERT_EQ(numbers[static_cast<std::size_t>(i)], i) << count;
    }
}

TEST(UniformOrder, IndexOfIsTheInverse) {
  expect_inverse<UniformOrder>();
  expect_inverse<KeyedPermutation>();
}

/// A thread keeps some orders; which ones changes nothing.
TEST(UniformOrder, ManyOrdersInTurn) {
  std::vector<Numbers> alone;
  for (int trial = 0; trial < 100; ++trial)
    alone.push_back(numbers_of(UniformOrder(30 + trial % 7), key_of(trial)));
  for (std::int64_t i = 0; i < 30; ++i)
    for (int trial = 0; trial < 100; ++trial)
      ASSERT_EQ(UniformOrder(30 + trial % 7).at(key_of(trial), i),
                alone[static_cast<std::size_t>(trial)][static_cast<std::size_t>(i)]);
}

// Runs depend on these orders. Of more than 256 numbers they are those of earlier versions.
TEST(UniformOrder, OrdersDoNotChange) {
  const Key key{7, philox_purpose("test"), 3};
  const auto first_of = [&](const auto& order) {
    Numbers first;
    for (std::int64_t i = 0; i < 6; ++i) first.push_back(order.at(key, i));
    return first;
  };
  using ::testing::ElementsAre;
  EXPECT_THAT(first_of(UniformOrder(40)), ElementsAre(33, 21, 14, 22, 5, 4));
  EXPECT_THAT(first_of(UniformOrder(256)), ElementsAre(141, 131, 186, 22, 5, 173));
  EXPECT_THAT(first_of(UniformOrder(257)), ElementsAre(99, 248, 230, 44, 54, 176));
  EXPECT_THAT(first_of(UniformOrder(1797)), ElementsAre(1538, 650, 435, 668, 519, 1737));
  EXPECT_THAT(first_of(KeyedPermutation(40)), ElementsAre(16, 39, 28, 11, 38, 29));
  EXPECT_THAT(first_of(KeyedPermutation(256)), ElementsAre(32, 49, 218, 43, 233, 211));
}

}  // namespace
}  // namespace lockstep
