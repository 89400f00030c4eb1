// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Detects a straggler: the slowest rank, if it took more than 1.2 times the median of all ranks in three
// consecutive windows of steps.
//
// Arithmetic only. The input is each rank's own time of each step, without its waiting for others (with it,
// all ranks would be equally slow). Ranks with the same input get the same result.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

struct StragglerOptions {
  int window_steps = 100;
  double factor = 1.2;
  double least_seconds = 0;  ///< per step, above the median; smaller differences are not reported
  int windows = 3;
};

struct Straggler {
  int rank = 0;
  double seconds = 0, median_seconds = 0;  ///< per step, in the last window
};

class StragglerDetector {
 public:
  /// Throws Error(config) for invalid options.
  explicit StragglerDetector(int ranks, StragglerOptions options = {});

  /// Records one step: seconds per rank. Returns a straggler once per episode. An episode ends with a window
  /// in which that rank is within the limit or is not the slowest. No allocation.
  std::optional<Straggler> step(std::span<const double> seconds);

 private:
  double median_of(std::vector<double>& values) const;

  StragglerOptions options_;
  std::vector<double> sums_, sorted_;
  int steps_ = 0, suspect_ = -1, streak_ = 0;
};

/// A line for the log: "rank 3 (host n07) slows the other ranks down: ...".
std::string straggler_message(const Straggler& straggler, const StragglerOptions& options,
                              const std::string& host);

}  // namespace lockstep
