// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Finds the rank that keeps the others waiting: the slowest one, when it took over 1.2 times the median of
// all ranks in three windows of steps in a row.
//
// Arithmetic only. It is fed with each rank's own time of each step, that is without its waiting for others
// (with that, all ranks are equally slow), and says the same on all ranks that are fed alike.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

struct StragglerOptions {
  int window_steps = 100;
  double factor = 1.2;
  double least_seconds = 0;  ///< per step, above the median: less is not worth a word
  int windows = 3;
};

struct Straggler {
  int rank = 0;
  double seconds = 0, median_seconds = 0;  ///< per step, in the last window
};

class StragglerDetector {
 public:
  /// Throws Error(config) for options that make no sense.
  explicit StragglerDetector(int ranks, StragglerOptions options = {});

  /// One step: seconds per rank. A straggler once per episode, which lasts until a window in which that
  /// rank is not over the limit or not the slowest. No allocation.
  std::optional<Straggler> step(std::span<const double> seconds);

 private:
  double median_of(std::vector<double>& values) const;

  StragglerOptions options_;
  std::vector<double> sums_, sorted_;
  int steps_ = 0, suspect_ = -1, streak_ = 0;
};

/// One line for the log: "rank 3 (host n07) holds the others up: ...".
std::string straggler_message(const Straggler& straggler, const StragglerOptions& options,
                              const std::string& host);

}  // namespace lockstep
