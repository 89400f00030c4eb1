// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Epochs in which classes have given shares. An epoch has as many places as it would have without, and a
// class its share of them, exactly: its quota. A class of n samples and a quota of q uses each sample
// floor(q / n) or ceil(q / n) times in an epoch. The samples that are used once more than others go round:
// those of the next epoch follow them, in an order of the class that the seed chooses. So over n epochs each
// sample of the class is used exactly q times, and none waits longer than ceil(n / q) epochs.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "data/class_lists.h"
#include "data/permutation.h"

namespace lockstep {

/// `places`, divided in proportion to `shares` (at least 0, some above 0) by largest remainders; of equal
/// remainders the first counts.
std::vector<std::int64_t> quotas_of(std::int64_t places, std::span<const double> shares);

class ClassQuotas {
 public:
  /// `shares`: by class of `lists`.
  ClassQuotas(ClassLists lists, std::span<const double> shares, std::int64_t places);

  /// The places of an epoch.
  std::int64_t size() const { return first_.back(); }
  const ClassLists& lists() const { return lists_; }
  /// The places of a class.
  std::int64_t quota(std::size_t of_class) const { return first_[of_class + 1] - first_[of_class]; }
  /// The sample at a place of an epoch; the places of a class follow one another. Threads may call it
  /// concurrently.
  std::int64_t sample_at(std::uint64_t seed, std::int64_t epoch, std::int64_t place) const;

 private:
  ClassLists lists_;
  std::vector<std::int64_t> first_;  ///< place of each class, and the end
};

}  // namespace lockstep
