// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/class_quotas.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.h"
#include "core/philox.h"

namespace lockstep {

namespace {
// Seeds determine the order of samples: do not change it.
constexpr std::uint32_t kClassPurpose = philox_purpose("step_plan/class");
}  // namespace

std::vector<std::int64_t> quotas_of(std::int64_t places, std::span<const double> shares) {
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  LOCKSTEP_CHECK(sum > 0 && places >= 0);
  std::vector<std::int64_t> quotas(shares.size());
  std::vector<double> remainders(shares.size());
  std::int64_t left = places;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    // fmod() is exact, so equal remainders of whole numbers compare equal.
    const double product = static_cast<double>(places) * shares[i];
    remainders[i] = std::fmod(product, sum);
    quotas[i] = std::llround((product - remainders[i]) / sum);
    left -= quotas[i];
  }
  std::vector<std::size_t> order(shares.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::erase_if(order, [&](std::size_t i) { return !(shares[i] > 0); });
  std::ranges::stable_sort(order,
                           [&](std::size_t a, std::size_t b) { return remainders[a] > remainders[b]; });
  LOCKSTEP_CHECK(left >= 0 && left <= std::ssize(order), "{} of {} places are left", left, places);
  for (std::int64_t i = 0; i < left; ++i) ++quotas[order[static_cast<std::size_t>(i)]];
  return quotas;
}

ClassQuotas::ClassQuotas(ClassLists lists, std::span<const double> shares, std::int64_t places)
    : lists_(std::move(lists)) {
  LOCKSTEP_CHECK(shares.size() == lists_.size());
  const std::vector<std::int64_t> quotas = quotas_of(places, shares);
  first_.push_back(0);
  for (const std::int64_t quota : quotas) first_.push_back(first_.back() + quota);
}

std::int64_t ClassQuotas::sample_at(std::uint64_t seed, std::int64_t epoch, std::int64_t place) const {
  const auto next = std::ranges::upper_bound(first_, place);
  const auto of_class = static_cast<std::size_t>(next - first_.begin()) - 1;
  const std::span<const std::uint32_t> samples = lists_.samples(of_class);
  const std::int64_t n = std::ssize(samples), in_class = place - first_[of_class];
  // The extra places of the epochs before: each sample has n of quota(of_class) in n epochs.
  const std::int64_t turn = epoch % n * (quota(of_class) % n) % n + in_class % n;
  const KeyedPermutation order(n);
  const KeyedPermutation::Key key{seed, kClassPurpose, static_cast<std::uint32_t>(of_class)};
  return samples[static_cast<std::size_t>(order.at(key, turn % n))];
}

}  // namespace lockstep
