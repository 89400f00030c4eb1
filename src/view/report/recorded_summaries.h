// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What the event files of a run hold in addition to numbers: histograms as quantiles over the steps, the
// first and the last picture of each tag, and its last sound or text.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "io/summary_value.h"

namespace lockstep::report {

/// Smallest, largest, the median, and what lies 0.5, 1 and 1.5 standard deviations from it in a normal
/// distribution.
inline constexpr std::array<double, 9> kShares = {0, 0.0668, 0.1587, 0.3085, 0.5, 0.6915, 0.8413, 0.9332, 1};
struct Quantiles {
  std::int64_t step = 0;
  std::array<double, kShares.size()> values{};
};
/// Linear inside a bucket. The histogram is not empty.
Quantiles quantiles_of(std::int64_t step, const HistogramData& histogram);

struct HistogramSeries {
  std::string tag;
  std::vector<Quantiles> steps;  ///< of many records every 2nd, 4th, ..., and the last one
  std::int64_t records = 0;
};
struct PictureSeries {
  std::string tag;
  std::int64_t first_step = 0, last_step = 0;
  ImageData first, last;
};
struct LastSound {
  std::string tag;
  std::int64_t step = 0;
  AudioData sound;
};
struct LastText {
  std::string tag;
  std::int64_t step = 0;
  std::string markdown;
};

struct RecordedSummaries {
  std::vector<HistogramSeries> histograms;  ///< in the order in which they appear
  std::vector<PictureSeries> pictures;
  std::vector<LastSound> sounds;
  std::vector<LastText> texts;        ///< without the configuration
  std::vector<std::string> problems;  ///< files that cannot be read
};

/// The summaries of a run's own event files, without those of evaluations. Never throws for what the files
/// hold.
RecordedSummaries read_summaries(const std::string& run_dir);

}  // namespace lockstep::report
