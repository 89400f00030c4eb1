// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// How far a conversion is: one line that is redrawn on a terminal, or a line every few seconds in a log. On
// rank 0.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "core/timer.h"

namespace lockstep {

/// "converted 200/1000 samples (20%)  12.3 MB/s  left 42s". `share`: of all work, comparing included.
std::string convert_progress_line(std::int64_t samples, std::int64_t total, double share, double bytes,
                                  double seconds);

class ConvertProgress {
 public:
  /// `quiet`: shows nothing.
  ConvertProgress(std::int64_t samples, std::int64_t sample_bytes, bool verify, bool quiet);
  /// Takes the numbers of all ranks; `kept`: samples of finished shards that are not written again.
  void update(std::int64_t written, std::int64_t verified, std::int64_t kept);
  /// Removes the redrawn line.
  void clear();
  double seconds() const { return timer_.seconds(); }

 private:
  const std::int64_t samples_, sample_bytes_;
  const bool verify_, quiet_;
  std::function<int()> width_;
  Timer timer_;
  double next_;
  bool drawn_ = false;
};

}  // namespace lockstep
