// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/straggler.h"

#include <algorithm>

#include "core/error.h"

namespace lockstep {

StragglerDetector::StragglerDetector(int ranks, StragglerOptions options)
    : options_(options), sums_(static_cast<std::size_t>(std::max(ranks, 0))), sorted_(sums_.size()) {
  LOCKSTEP_REQUIRE(ranks >= 1 && options.window_steps >= 1 && options.windows >= 1 && options.factor > 1,
                   ErrorKind::config, "stragglers: {} ranks, windows of {} steps, {} in a row, factor {}",
                   ranks, options.window_steps, options.windows, options.factor);
}

std::optional<Straggler> StragglerDetector::step(std::span<const double> seconds) {
  LOCKSTEP_CHECK(seconds.size() == sums_.size(), "{} times for {} ranks", seconds.size(), sums_.size());
  for (std::size_t rank = 0; rank < sums_.size(); ++rank) sums_[rank] += seconds[rank];
  if (++steps_ < options_.window_steps) return std::nullopt;
  steps_ = 0;
  const auto slowest = std::max_element(sums_.begin(), sums_.end());
  const int rank = static_cast<int>(slowest - sums_.begin());
  std::copy(sums_.begin(), sums_.end(), sorted_.begin());
  const double slow = *slowest, median = median_of(sorted_);
  std::fill(sums_.begin(), sums_.end(), 0.0);
  if (!(slow > options_.factor * median && slow - median >= options_.least_seconds * options_.window_steps)) {
    suspect_ = -1;
    streak_ = 0;
    return std::nullopt;
  }
  streak_ = rank == suspect_ ? streak_ + 1 : 1;
  suspect_ = rank;
  if (streak_ != options_.windows) return std::nullopt;
  return Straggler{rank, slow / options_.window_steps, median / options_.window_steps};
}

double StragglerDetector::median_of(std::vector<double>& values) const {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*std::max_element(values.begin(), middle) + *middle) / 2;
}

std::string straggler_message(const Straggler& straggler, const StragglerOptions& options,
                              const std::string& host) {
  return fmt::format(
      "rank {} (host {}) slows the other ranks down: its own work takes {:.4g} s per step, {:.2f} times the "
      "median of all ranks, in {} consecutive windows of {} steps",
      straggler.rank, host, straggler.seconds, straggler.seconds / straggler.median_seconds, options.windows,
      options.window_steps);
}

}  // namespace lockstep
